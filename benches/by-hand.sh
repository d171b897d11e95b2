#!/usr/bin/env bash
# What a person does without k8tre: the work of `k8tre dev up --sample`, one step after another, with
# kind, docker, kubectl and git. Prints one JSON line with each step's seconds and the total.
#
#   benches/by-hand.sh [TRE-FOLDER [BRANCH]]      default: sample-tre dev/byhand
#
# The images must be in Docker already. In the lab: eval "$(tests/lab/lab env)". Elsewhere set
# K8TRE_LAB_NODE_IMAGE and K8TRE_LAB_ARGOCD_MANIFEST. K8TRE_BENCH_LABELS are the cluster's labels.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tre=${1:-$here/sample-tre}
branch=${2:-dev/byhand}
node_image=${K8TRE_LAB_NODE_IMAGE:?see the first lines of this script}
manifest=${K8TRE_LAB_ARGOCD_MANIFEST:?see the first lines of this script}
labels=${K8TRE_BENCH_LABELS:-environment=dev-byhand developer=byhand vendor=kind secret-store=kubernetes external-domain=tre.localhost cluster-name=byhand region=local}
cluster=byhand
url=git://tre-git.argocd.svc/tre.git

work=$(mktemp -d)
trap 'kind delete cluster --name "$cluster" --kubeconfig "$work/kubeconfig" >/dev/null 2>&1; rm -rf "$work"' EXIT
kind delete cluster --name "$cluster" --kubeconfig "$work/kubeconfig" >/dev/null 2>&1
kubectl() { command kubectl --kubeconfig "$work/kubeconfig" "$@"; }
argocd_image=$(grep -oPm1 'image: \K\S*argoproj/argocd:\S+' "$manifest")
redis_image=$(grep -oPm1 'image: \K\S*redis:\S+' "$manifest")

make_cluster() { kind create cluster --name "$cluster" --image "$node_image" --kubeconfig "$work/kubeconfig"; }

load_images() { kind load docker-image --name "$cluster" "$argocd_image" "$redis_image"; }

apply_argocd() {
    kubectl create namespace argocd
    # Preloaded images must not be pulled again.
    sed 's/imagePullPolicy: Always/imagePullPolicy: IfNotPresent/' "$manifest" |
        kubectl apply --namespace argocd --server-side --filename -
    # An Ingress or a LoadBalancer gets no address here, and must not keep an Application waiting.
    kubectl patch configmap argocd-cm --namespace argocd --type merge --patch '
data:
  resource.customizations.health.networking.k8s.io_Ingress: "return {status = \"Healthy\"}"
  resource.customizations.health.Service: "return {status = \"Healthy\"}"'
    # Nobody logs in through Dex or is notified on a laptop; k8tre leaves both out, too.
    kubectl scale --namespace argocd --replicas 0 deployment argocd-dex-server argocd-notifications-controller
}

wait_for_argocd() {
    kubectl wait --namespace argocd --for condition=Available --timeout 300s deployment --all
    kubectl rollout status --namespace argocd --timeout 300s statefulset argocd-application-controller
}

start_git_server() {
    kubectl apply --namespace argocd --filename - <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: tre-git}
spec:
  selector: {matchLabels: {app: tre-git}}
  template:
    metadata: {labels: {app: tre-git}}
    spec:
      containers:
      - name: git
        image: $argocd_image
        command: [sh, -c, "git init --quiet --bare /git/tre.git && exec git daemon --export-all --reuseaddr --base-path=/git /git"]
        readinessProbe: {tcpSocket: {port: 9418}, periodSeconds: 1}
        volumeMounts: [{name: git, mountPath: /git}]
      volumes: [{name: git, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: tre-git}
spec:
  selector: {app: tre-git}
  ports: [{port: 9418}]
YAML
    kubectl rollout status --namespace argocd --timeout 120s deployment tre-git
}

push_branch() {
    local checkout=$work/tre
    cp -r "$tre" "$checkout"
    [[ -d $checkout/.git ]] || git -C "$checkout" init --quiet
    git -C "$checkout" checkout --quiet -B "$branch"
    grep -rlE 'repoURL:|value: (https|git)://' "$checkout/appsets" "$checkout/app_of_apps" | xargs sed -i -E \
        -e "s#(repoURL|value): (https|git)://[^ ]+\.git#\1: $url#" \
        -e "s#(revision|targetRevision|value): main\$#\1: $branch#"
    # The developer's own folder for each part that is switched on, as K8TRE's layout has it.
    local folder
    for folder in "$checkout"/apps/*/envs/dev "$checkout"/agnostics/*/envs/dev "$checkout"/agnostics/*/*/envs/dev; do
        [[ -f $folder/kustomization.yaml ]] || continue
        mkdir "$folder-byhand"
        printf '%s\n' 'apiVersion: kustomize.config.k8s.io/v1beta1' 'kind: Kustomization' 'resources: [../dev]' >"$folder-byhand/kustomization.yaml"
    done
    git -C "$checkout" add --all
    git -C "$checkout" -c user.name=hand -c user.email=hand@example.org commit --quiet --message "For this cluster"
    # git asks "ssh" for `git-receive-pack '/git/tre.git'` on a host: run that in the pod.
    cat >"$work/ssh" <<SH
#!/bin/sh
shift
exec kubectl --kubeconfig "$work/kubeconfig" exec --namespace argocd --stdin deployment/tre-git -- sh -c "\$*"
SH
    chmod +x "$work/ssh"
    GIT_SSH=$work/ssh GIT_SSH_VARIANT=simple git -C "$checkout" push --quiet "ssh://pod/git/tre.git" "HEAD:refs/heads/$branch"
}

register_cluster() {
    kubectl create secret generic in-cluster --namespace argocd \
        --from-literal name=in-cluster --from-literal server=https://kubernetes.default.svc \
        --from-literal config='{"tlsClientConfig":{"insecure":false}}'
    # shellcheck disable=SC2086
    kubectl label secret in-cluster --namespace argocd argocd.argoproj.io/secret-type=cluster $labels
}

apply_root() { kubectl apply --namespace argocd --filename "$work/tre/app_of_apps/root-app-of-apps.yaml"; }

# The root has made every ApplicationSet, each of these its Applications, and all of them are well.
all_are_healthy() {
    kubectl get applications.argoproj.io,applicationsets.argoproj.io --namespace argocd --output json | jq -e '
        [.items[] | select(.kind == "Application")] as $apps
        | [.items[] | select(.kind == "ApplicationSet")] as $sets
        | ([$apps[].status.resources[]? | select(.kind == "ApplicationSet")] | length) as $wanted
        | $wanted > 0 and ($sets | length) == $wanted
        and ($sets | all(any(.status.conditions[]?; .type == "ResourcesUpToDate" and .status == "True")))
        and ($apps | all(.status.sync.status == "Synced" and .status.health.status == "Healthy"
                         and .status.operationState.phase == "Succeeded"))' >/dev/null
}

wait_for_applications() {
    local deadline=$((SECONDS + 300))
    until all_are_healthy; do
        if ((SECONDS > deadline)); then
            kubectl get applications.argoproj.io --namespace argocd --output wide >&2
            return 1
        fi
        sleep 0.5
    done
    # Without the root, as k8tre counts them.
    applications=$(($(kubectl get applications.argoproj.io --namespace argocd --output name | wc -l) - 1))
}

json='{}'
applications=0
seconds_between() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", b - a }'; }
step() { # name function
    local from=$EPOCHREALTIME
    "$2" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; echo "by hand: $1 failed" >&2; exit 1; }
    json=$(jq -c --arg name "$1" --argjson took "$(seconds_between "$from" "$EPOCHREALTIME")" '. + {($name): $took}' <<<"$json")
}

start=$EPOCHREALTIME
step cluster make_cluster
step images load_images
step apply apply_argocd
step argocd wait_for_argocd
step git-server start_git_server
step push push_branch
step register register_cluster
step root apply_root
step applications wait_for_applications
jq -c --argjson total "$(seconds_between "$start" "$EPOCHREALTIME")" --argjson applications "$applications" \
    '{tool: "by-hand", total: $total, applications: $applications, steps: .}' <<<"$json"
