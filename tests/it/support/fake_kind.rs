//! A `kind` that makes files in the folder of a [`FakeDocker`] in place of containers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8tre::providers::kind::KindProgram;
use semver::Version;

use super::fake_docker::FakeDocker;

/// `@DIR@` is the fake's own folder, `@CONTAINERS@` that of the fake Docker.
const SCRIPT: &str = r#"#!/bin/sh
set -u
dir='@DIR@'; containers='@CONTAINERS@'
echo "$*" >> "$dir/argv"
echo "KUBECONFIG=${KUBECONFIG-} DOCKER_HOST=${DOCKER_HOST-} DOCKER_CONTEXT=${DOCKER_CONTEXT-} KIND_CLUSTER_NAME=${KIND_CLUSTER_NAME-} KIND_EXPERIMENTAL_PROVIDER=${KIND_EXPERIMENTAL_PROVIDER-}" >> "$dir/env"
mode=$(cat "$dir/mode")
gate() { cat "$dir/gate" 2>/dev/null; }
hold() { : > "$dir/held"; while [ "$(gate)" != open ]; do sleep 0.03; done; }
kubeconfig() {
  server=$(cat "$dir/server" 2>/dev/null)
  printf '{"apiVersion":"v1","kind":"Config","current-context":"kind-%s","clusters":[{"name":"kind-%s","cluster":{"server":"%s/%s"}}],"contexts":[{"name":"kind-%s","context":{"cluster":"kind-%s","user":"kind-%s"}}],"users":[{"name":"kind-%s","user":{}}]}\n' \
    "$name" "$name" "$server" "$name" "$name" "$name" "$name" "$name"
}
name=; kubeconfig=; retain=
all="$*"
while [ $# -gt 0 ]; do
  case $1 in
    --name) name=$2; shift ;;
    --kubeconfig) kubeconfig=$2; shift ;;
    --retain) retain=1 ;;
  esac
  shift
done
case $all in
  version*) echo "kind v0.33.0 go1.26.0 linux/amd64" ;;
  "create cluster"*)
    cat > "$dir/config-$name.json"
    case $(gate) in
      hold-all) hold ;;
      lie) : > "$dir/held"; echo open > "$dir/gate"; exit 0 ;;
      fail) : > "$dir/held"; echo "ERROR: failed to create cluster: the fake was told to fail" >&2; exit 1 ;;
    esac
    if ls "$containers/$name-"* >/dev/null 2>&1; then
      echo "ERROR: failed to create cluster: node(s) already exist for a cluster with the name \"$name\"" >&2
      exit 1
    fi
    [ "$mode" = noise ] && head -c 8000000 /dev/zero | tr '\0' x >&2
    mark=$(sed -n 's/.*"containerPath":"\(\/k8tre\/owner\/[^"]*\)".*/\1/p' "$dir/config-$name.json")
    if [ "$mode" = slow ]; then
      # As `docker run` does, a child of kind makes the container a while later.
      printf '{"name":"%s","labels":{"io.x-k8s.kind.cluster":"%s"},"mounts":[{"destination":"%s"}],"state":"running","files":[]}' \
        "$name-control-plane" "$name" "$mark" > "$dir/late.json"
      sh -c 'sleep 1; mv "$0" "$1"' "$dir/late.json" "$containers/$name-control-plane.json" run "io.x-k8s.kind.cluster=$name" &
      wait
    fi
    networks="$containers/../networks"
    [ -e "$networks/kind.json" ] || printf '{"Name":"kind","Id":"net-%s","IPAM":{"Config":[{"Subnet":"172.18.0.0/16"}]}}' "$$" > "$networks/kind.json"
    printf '{"name":"%s","birth":"%s-%s","labels":{"io.x-k8s.kind.cluster":"%s","io.x-k8s.kind.role":"control-plane"},"mounts":[{"destination":"%s"}],"state":"running","files":[]}' \
      "$name-control-plane" "$(date +%s)" "$$" "$name" "$mark" > "$dir/new-$name.json"
    mv "$dir/new-$name.json" "$containers/$name-control-plane.json"
    case $(gate) in
      hold-after) hold ;;
      lose) : > "$dir/held"; kill -9 $$ ;;
    esac
    case $mode in
      fail)
        echo 'ERROR: failed to create cluster: could not find a log line that matches "Reached target .*Multi-User System.*"' >&2
        [ -n "$retain" ] || rm "$containers/$name-control-plane.json"
        exit 1 ;;
      die) kill -9 $$ ;;
      hang) exec sleep 60 ;;
    esac
    (umask 077; kubeconfig > "$kubeconfig") ;;
  "delete cluster"*)
    case $(gate) in
      hold-all) hold ;;
      lie) : > "$dir/held"; echo open > "$dir/gate"; exit 0 ;;
      fail) : > "$dir/held"; echo "ERROR: the fake was told to fail" >&2; exit 1 ;;
    esac
    [ "$mode" = stubborn ] && { echo "ERROR: failed to delete" >&2; exit 1; }
    rm -f "$containers/$name-"*.json
    case $(gate) in
      hold-after) hold ;;
      lose) : > "$dir/held"; kill -9 $$ ;;
    esac ;;
  "get kubeconfig"*) kubeconfig ;;
  "export logs "*)
    folder=$(echo "$all" | sed 's/^export logs \([^ ]*\) .*/\1/')
    mkdir -p "$folder/$name-control-plane"
    cat "$dir/export" > "$folder/$name-control-plane/kubelet.log" ;;
  *) echo "the fake does not know: $all" >&2; exit 64 ;;
esac
"#;

pub struct FakeKind {
    folder: tempfile::TempDir,
}

impl FakeKind {
    pub fn new(docker: &FakeDocker) -> FakeKind {
        let folder = tempfile::tempdir().unwrap();
        let script = SCRIPT
            .replace("@DIR@", folder.path().to_str().unwrap())
            .replace("@CONTAINERS@", docker.containers().to_str().unwrap());
        let path = folder.path().join("kind");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let kind = FakeKind { folder };
        kind.mode("well");
        kind
    }

    /// `well`, `fail`, `die`, `hang`, `slow`, `noise` or `stubborn`.
    pub fn mode(&self, mode: &str) {
        fs::write(self.folder.path().join("mode"), mode).unwrap();
    }

    /// What `kind export logs` will find in a node.
    pub fn exports(&self, text: &str) {
        fs::write(self.folder.path().join("export"), text).unwrap();
    }

    pub fn program(&self) -> KindProgram {
        KindProgram { path: self.folder.path().join("kind"), version: Version::new(0, 33, 0), fetched: false }
    }

    /// The folder with the program, which a test may put on PATH.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Address of the API servers, each at the path of its cluster's name.
    pub fn serve(&self, url: &str) {
        fs::write(self.folder.path().join("server"), url).unwrap();
    }

    /// A file for the environment's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("environment/kubeconfig")
    }

    /// Command lines so far.
    pub fn argv(&self) -> Vec<String> {
        self.lines("argv")
    }

    /// What of the environment matters, for each run.
    pub fn env(&self) -> Vec<String> {
        self.lines("env")
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
