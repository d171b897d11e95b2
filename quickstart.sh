#!/usr/bin/env bash
# From a fresh clone to a healthy sample TRE: installs what is missing where it can, builds k8tre, and
# runs `k8tre dev up --sample` with the arguments given. Run it again at will: what is there is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/k8tre/target}
programs=${CARGO_HOME:-$HOME/.cargo}/bin
callers_path=$PATH

say() { printf 'quickstart: %s\n' "$*" >&2; }
stop() { # what is missing, then what to do, a line each
    say "$1"
    shift
    printf '    %s\n' "$@" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Whether a command succeeds within so many seconds; macOS has no `timeout`.
within() { # seconds command...
    local seconds=$1 pid i
    shift
    "$@" >/dev/null 2>&1 </dev/null &
    pid=$!
    for ((i = 0; i < seconds * 5; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null
}

# The lab can stand in for Docker and for an image registry, on Debian and as root only.
lab_is_possible() { [[ $(id -u) == 0 && -f /etc/debian_version ]] && have apt-get; }

install_tools() {
    local packages=()
    have git || packages+=(git)
    have cc || packages+=(gcc libc6-dev)
    have curl || packages+=(curl ca-certificates)
    ((${#packages[@]})) || return 0
    if have apt-get && [[ $(id -u) == 0 ]]; then
        say "installing ${packages[*]}"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
    elif have apt-get; then
        stop "these packages are missing: ${packages[*]}" "sudo apt-get install ${packages[*]}"
    elif [[ $(uname) == Darwin ]]; then
        stop "git and a C compiler are missing" "xcode-select --install"
    else
        stop "git, curl or a C compiler is missing" "install them with your system's package manager, then run this again"
    fi
}

# The version that Cargo.toml asks for, or newer.
rust_is_new_enough() {
    local wanted there
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    there=$(cargo --version 2>/dev/null | awk '{ print $2 }')
    awk -v a="$there" -v b="$wanted" 'BEGIN {
        split(a, x, "."); split(b, y, ".")
        exit !(x[1] > y[1] || (x[1] == y[1] && x[2] + 0 >= y[2] + 0))
    }'
}

install_rust() {
    PATH=$programs:$PATH
    rust_is_new_enough && return
    if have rustup; then
        say "updating Rust"
        rustup toolchain install stable --profile minimal --no-self-update
        export RUSTUP_TOOLCHAIN=stable
    else
        local installer
        installer=$(mktemp)
        say "installing Rust with rustup into ${CARGO_HOME:-$HOME/.cargo}"
        curl --proto '=https' --tlsv1.2 -sSf --max-time 60 https://sh.rustup.rs -o "$installer" ||
            stop "rustup cannot be fetched from https://sh.rustup.rs" "install Rust another way, then run this again"
        sh "$installer" -y --profile minimal --no-modify-path
        rm -f "$installer"
    fi
    rust_is_new_enough || stop "Rust is older than Cargo.toml asks for: $(cargo --version)" "rustup update"
}

need_docker() {
    within 20 docker info && return
    if lab_is_possible && [[ -z ${DOCKER_HOST:-} ]]; then
        say "Docker does not answer; installing and starting it"
        tests/lab/lab docker
    elif [[ $(uname) == Darwin ]]; then
        stop "Docker does not answer" "start Docker Desktop, or: brew install colima docker && colima start"
    elif have docker; then
        stop "Docker does not answer${DOCKER_HOST:+ at $DOCKER_HOST}" \
            "is it running?          sudo systemctl start docker" \
            "may you use it?         sudo usermod -aG docker $(id -un), then log in again" \
            "what does it say?       docker info"
    else
        stop "Docker is not installed" "https://docs.docker.com/engine/install/"
    fi
}

# Whether images can be pulled. The registries are asked directly first, in seconds; where this shell
# has no way out, Docker still may, through a proxy of its own: then a very small image is pulled.
registry_answers() {
    local registry=https://registry-1.docker.io/v2/ probe=registry.k8s.io/pause:3.10
    case $(curl -s -o /dev/null -w '%{http_code}' --max-time 10 "$registry" || true) in
    200 | 401) return 0 ;;
    esac
    docker image inspect "$probe" >/dev/null 2>&1 && probe=registry.k8s.io/pause:3.9
    within 30 docker pull "$probe" || return 1
    docker rmi "$probe" >/dev/null 2>&1 || true
}

flags=()
use_lab() {
    tests/lab/lab up
    eval "$(tests/lab/lab env)"
    # shellcheck disable=SC2016
    say 'kind and kubectl come from the lab; for your shell: eval "$(tests/lab/lab env)"'
    flags=(--node-image "$K8TRE_LAB_NODE_IMAGE" --argocd-manifest "$K8TRE_LAB_ARGOCD_MANIFEST")
}

need_images() {
    if [[ -n ${K8TRE_LAB_NODE_IMAGE:-} ]]; then
        use_lab
    elif registry_answers; then
        return
    elif lab_is_possible; then
        say "no image registry answers: building the images here (15 minutes the first time)"
        use_lab
    else
        say "no image registry answers; going on with the images that Docker already has"
    fi
}

install_tools
install_rust
say "building k8tre (some minutes the first time)"
[[ -t 2 ]] || export CARGO_TERM_QUIET=true
cargo install --path . --locked --root "${programs%/bin}"
need_docker
need_images
case :$callers_path: in
*":$programs:"*) ;;
*) say "k8tre is in $programs, which is not on your PATH: export PATH=\"$programs:\$PATH\"" ;;
esac
say "k8tre dev up --sample${flags[*]+ ${flags[*]}}${*+ $*}"
exec "$programs/k8tre" dev up --sample ${flags[@]+"${flags[@]}"} "$@"
