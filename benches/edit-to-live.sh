#!/usr/bin/env bash
# How long an edit takes to be live: N edits of the sample TRE with `k8tre dev sync`, and N with `--watch`, from the
# write of the file until the cluster has it and Argo CD shows the Application synced and healthy.
#
#   benches/edit-to-live.sh [N] [APPLICATIONS]       default: 20, and the sample's own
#
# With a number of APPLICATIONS the repository gets as many small ones besides. K8TRE names the binary (default: built
# here, release); K8TRE_BENCH_ENVIRONMENT an environment of the sample that is up already, which then stays.
set -euo pipefail

runs=${1:-20}
applications=${2:-0}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/k8tre/target}
if [[ -z ${K8TRE:-} ]]; then
    cargo build --release --locked --manifest-path "$here/Cargo.toml"
    K8TRE=$CARGO_TARGET_DIR/release/k8tre
fi
out=$(mktemp -d)
name=${K8TRE_BENCH_ENVIRONMENT:-bench-sync}
watcher=
finish() {
    [[ -z $watcher ]] || kill -INT "$watcher" 2>/dev/null || true
    [[ -n ${K8TRE_BENCH_ENVIRONMENT:-} ]] || "$K8TRE" dev down "$name" --yes >"$out/down.log" 2>&1 || tail -20 "$out/down.log" >&2
}
trap finish EXIT

if [[ -z ${K8TRE_BENCH_ENVIRONMENT:-} ]]; then
    flags=()
    [[ -z ${K8TRE_LAB_NODE_IMAGE:-} ]] || flags+=(--node-image "$K8TRE_LAB_NODE_IMAGE")
    [[ -z ${K8TRE_LAB_ARGOCD_MANIFEST:-} ]] || flags+=(--argocd-manifest "$K8TRE_LAB_ARGOCD_MANIFEST")
    export K8TRE_DATA_DIR=$out/data K8TRE_CONFIG_DIR=$out/config
    "$K8TRE" dev up "$name" --sample="$out/tre" ${flags[@]+"${flags[@]}"} >"$out/up.log" 2>&1 </dev/null || { tail -30 "$out/up.log" >&2; exit 1; }
fi
repo=$("$K8TRE" dev status "$name" -o json | jq -r .branch.repository) || true
KUBECONFIG=$("$K8TRE" dev kubeconfig "$name")
export KUBECONFIG
cd "$repo"
file=apps/workspaces/base/profiles.yaml

if ((applications > 0)); then
    mkdir -p appsets/many
    sed -e 's/name: portal$/name: many/; s#apps/portal/envs/\*#many/*/envs/*#' \
        -e '/kustomize:/,/value: /d' appsets/portal/portal.yaml >appsets/many/many.yaml
    sed -i 's#^resources:#resources:\n  - many/many.yaml#' appsets/kustomization.yaml
    for ((i = 1; i <= applications; i++)); do
        mkdir -p "many/m$i/envs/dev" "many/m$i/base"
        printf 'resources: [../../base]\n' >"many/m$i/envs/dev/kustomization.yaml"
        printf 'resources: [config.yaml]\n' >"many/m$i/base/kustomization.yaml"
        printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {number: "%s"}\n' "$i" >"many/m$i/base/config.yaml"
    done
    echo "adding $applications Applications"
    "$K8TRE" dev sync "$name" --timeout 10m | tail -1
    sleep 60
fi

edit() { sed -i "s/^  small: .*/  small: \"$1\"/" "$file"; }
live() { kubectl -n workspaces get configmap workspace-profiles -o 'jsonpath={.data.small}'; }
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }'; }
summary() {
    sort -n "$1" | awk -v what="$2" '{ t[NR] = $1 } END {
        m = NR % 2 ? t[(NR + 1) / 2] : (t[NR / 2] + t[NR / 2 + 1]) / 2
        printf "%-8s %d runs: median %.2f s, best %.2f s, worst %.2f s\n", what, NR, m, t[1], t[NR] }'
}

for ((i = 0; i <= runs; i++)); do
    value="sync-$i-$RANDOM"
    from=$EPOCHREALTIME
    edit "$value"
    "$K8TRE" dev sync "$name" -o json >"$out/sync.json"
    took=$(since "$from")
    [[ $(live) == "$value" ]] || { echo "not live: $value" >&2; exit 1; }
    # The first one only warms up.
    ((i == 0)) || echo "$took" >>"$out/sync"
    jq -c --arg took "$took" '{took: $took, seconds, read, pushed, live: [.applications[] | {(.name): .seconds}] | add}' "$out/sync.json" >>"$out/sync.jsonl"
done
summary "$out/sync" "sync"

coproc WATCH { exec "$K8TRE" dev sync "$name" --watch -o json 2>"$out/watch.log"; }
watcher=$WATCH_PID
exec {lines}<&"${WATCH[0]}"
until grep -q ^watching "$out/watch.log"; do sleep 0.1; done
sleep 1
for ((i = 0; i <= runs; i++)); do
    value="watch-$i-$RANDOM"
    from=$EPOCHREALTIME
    edit "$value"
    read -r -t 60 line <&"$lines"
    took=$(since "$from")
    [[ $(live) == "$value" ]] || { echo "not live: $value: $line" >&2; exit 1; }
    ((i == 0)) || echo "$took" >>"$out/watch"
    jq -c --arg took "$took" '{took: $took, seconds, read, pushed}' <<<"$line" >>"$out/watch.jsonl"
    sleep 0.3
done
summary "$out/watch" "watch"
echo "each run: $out"
