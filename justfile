# `just` lists the recipes. CI calls the same ones.

# Kept outside the work tree, and shared with `.ci/run` and `quickstart.sh`.
export CARGO_TARGET_DIR := env("CARGO_TARGET_DIR", home_directory() / ".cache/k8tre/target")

[private]
default:
    @just --list --unsorted

# Build the release binary
[group('build')]
build:
    cargo build --release --locked

# Install k8tre into cargo's bin folder
[group('build')]
install:
    cargo install --path . --locked

# All hermetic tests
[group('test')]
test *args:
    cargo test {{ args }}

# Every fuzz target, each so many seconds (needs nightly Rust and cargo-fuzz)
[group('test')]
fuzz seconds="60":
    for target in $(cargo +nightly fuzz list); do cargo +nightly fuzz run "$target" -- -max_total_time={{ seconds }} -rss_limit_mb=2048 -timeout=10 || exit; done

# End-to-end tests in the lab; with K8TRE_LAB=1 on the Docker that is there
[group('test')]
e2e *args:
    .ci/run e2e {{ args }}

# What CI runs
[group('test')]
ci:
    .ci/run

# Formatting, clippy, shell scripts
[group('lint')]
lint:
    .ci/run lint

# Licences, advisories, banned and duplicate crates (needs cargo-deny)
[group('lint')]
deny:
    cargo deny --all-features check

# Format the code
[group('lint')]
fmt:
    cargo fmt

# The lab: up, docker, env, status, down
[group('lab')]
lab command="up":
    tests/lab/lab {{ command }}

# A healthy sample TRE from nothing
[group('lab')]
quickstart *args:
    ./quickstart.sh {{ args }}

# k8tre against the same work by hand, alternately
[group('bench')]
bench runs="5":
    benches/compare.sh {{ runs }}

# From an edit to its effect, with sync and with --watch
[group('bench')]
edit-to-live runs="20" applications="0":
    benches/edit-to-live.sh {{ runs }} {{ applications }}

# The preview of 10, 100 and 1,000 ApplicationSets: seconds and memory
[group('bench')]
scale:
    cargo bench --bench scale

# API documentation, with warnings as errors
[group('docs')]
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --all-features
