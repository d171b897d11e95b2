#!/usr/bin/env bash
# `k8tre dev sync --watch` under edits at random: is its memory flat, is no edit missed, does no sync hang?
#
#   benches/watch-soak.sh [MINUTES]       default: 10
#
# Needs an environment of the sample that is up: K8TRE_BENCH_ENVIRONMENT. K8TRE names the binary.
set -euo pipefail

minutes=${1:-10}
name=${K8TRE_BENCH_ENVIRONMENT:?name of an environment of the sample that is up}
K8TRE=${K8TRE:-k8tre}
out=$(mktemp -d)
repo=$("$K8TRE" dev status "$name" -o json | jq -r .branch.repository) || true
KUBECONFIG=$("$K8TRE" dev kubeconfig "$name")
export KUBECONFIG
cd "$repo"
"$K8TRE" dev sync "$name" --watch -o json >"$out/lines" 2>"$out/log" &
watcher=$!
trap 'kill -INT $watcher 2>/dev/null || true' EXIT
until grep -q ^watching "$out/log"; do sleep 0.1; done
sleep 5
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$watcher/status"; }

file=apps/workspaces/base/profiles.yaml
first=$(memory)
edits=0
missed=0
end=$((SECONDS + minutes * 60))
while ((SECONDS < end)); do
    case $((RANDOM % 8)) in
    0) for ((i = 0; i < 200; i++)); do echo "$RANDOM" >"note-$i.txt"; done ;;
    1) rm -f note-*.txt ;;
    2) cp "$file" "$file.new" && mv "$file.new" "$file" ;;
    3) if git stash --quiet --include-untracked; then git stash pop --quiet || true; fi ;;
    4) mkdir -p "extra/$RANDOM/deep" && touch "extra/$RANDOM" ;;
    5) touch README.md ;;
    *) for ((i = 0; i < 3; i++)); do sed -i "s/^  small: .*/  small: \"$RANDOM\"/" "$file"; sleep "0.0$((RANDOM % 9))"; done ;;
    esac
    edits=$((edits + 1))
    sleep "0.$((RANDOM % 9))"
    if ((edits % 20 == 0)); then
        value="mark-$edits-$RANDOM"
        sed -i "s/^  small: .*/  small: \"$value\"/" "$file"
        for ((i = 0; i < 300; i++)); do
            [[ $(kubectl -n workspaces get configmap workspace-profiles -o 'jsonpath={.data.small}') != "$value" ]] || break
            sleep 0.1
        done
        ((i < 300)) || { missed=$((missed + 1)); echo "missed: $value"; }
        echo "$SECONDS s: $edits edits, $(wc -l <"$out/lines") syncs, $(memory) KiB"
    fi
done
last=$(memory)
errors=$(jq -r 'select(.error) | .error' "$out/lines" | sort | uniq -c)
echo "$edits edits, $(wc -l <"$out/lines") syncs, $missed missed, memory $first -> $last KiB"
[[ -z $errors ]] || echo "$errors"
rm -rf extra note-*.txt
((missed == 0))
