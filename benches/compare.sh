#!/usr/bin/env bash
# Runs the same work by hand and with k8tre, alternately, N times each, and compares them.
#
#   benches/compare.sh [N]       default: 5
#
# K8TRE names the binary (default: built here, release). K8TRE_BENCH_FLAGS are more flags for `up`.
# Each run is kept as a JSON line in the folder that is named at the end.
set -euo pipefail

runs=${1:-5}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/k8tre/target}
if [[ -z ${K8TRE:-} ]]; then
    cargo build --release --locked --manifest-path "$here/Cargo.toml"
    K8TRE=$CARGO_TARGET_DIR/release/k8tre
fi
out=$(mktemp -d)
results=$out/results.jsonl
flags=()
[[ -z ${K8TRE_LAB_NODE_IMAGE:-} ]] || flags+=(--node-image "$K8TRE_LAB_NODE_IMAGE")
[[ -z ${K8TRE_LAB_ARGOCD_MANIFEST:-} ]] || flags+=(--argocd-manifest "$K8TRE_LAB_ARGOCD_MANIFEST")
# shellcheck disable=SC2206
flags+=(${K8TRE_BENCH_FLAGS:-})

# From what `k8tre dev up -o json` prints to {step: seconds}.
k8tre_steps='[.steps[]? | {(.id): .seconds}] | add // {}'

with_k8tre() {
    local from took
    export K8TRE_DATA_DIR=$out/data K8TRE_CONFIG_DIR=$out/config
    from=$EPOCHREALTIME
    "$K8TRE" dev up bench --sample -o json ${flags[@]+"${flags[@]}"} >"$out/up.json" 2>"$out/up.log" </dev/null || {
        tail -30 "$out/up.log" >&2
        "$K8TRE" dev down bench --yes >/dev/null 2>&1 || true
        exit 1
    }
    took=$(awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
    jq -c --argjson total "$took" '{tool: "k8tre", total: $total, applications: (.applications // [] | length), steps: ('"$k8tre_steps"')}' "$out/up.json"
    "$K8TRE" dev down bench --yes >"$out/down.log" 2>&1 </dev/null || { tail -30 "$out/down.log" >&2; exit 1; }
}

for ((i = 1; i <= runs; i++)); do
    for tool in by-hand k8tre; do
        case $tool in
        by-hand) "$here/benches/by-hand.sh" >"$out/run" ;;
        k8tre) with_k8tre >"$out/run" ;;
        esac
        tee -a "$results" <"$out/run" | jq -r --arg i "$i" '"run \($i)  \(.tool)  \(.total) s"'
    done
done

jq -rs '
    def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
    def rounded: . * 100 | round / 100;
    def row($name): "  \($name): median \(median | rounded) s, \(min | rounded)–\(max | rounded) s";
    group_by(.tool) as $tools
    | ($tools[] | .[0].tool as $tool | "\n\($tool), \(length) runs, \(map(.applications) | unique | map(tostring) | join(" or ")) Applications",
        ([.[].total] | row("total")),
        (. as $runs | ($runs[0].steps | keys_unsorted[]) as $step | [$runs[].steps[$step] // 0] | row($step))),
      ([$tools[] | {(.[0].tool): ([.[].total] | median)}] | add | "\nk8tre / by hand: \(.k8tre / .["by-hand"] | rounded)")
' "$results"
echo "runs: $results"
