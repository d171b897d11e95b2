//! Programs that k8tre finds on PATH, as scripts: docker, which is only looked for, and kubectl, which
//! changes the user's kubeconfig.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Knows `config` on a file with one entry a line, as [`KUBECONFIG`] has it.
const KUBECTL: &str = r#"#!/bin/sh
set -eu
[ "$1" = config ] || { echo "the fake does not know: $*" >&2; exit 64; }
shift
verb=$1; name=$2; shift 2
server=; file=
while [ $# -gt 0 ]; do
  case $1 in
    --server=*) server=${1#--server=} ;;
    --kubeconfig) file=$2; shift ;;
  esac
  shift
done
[ -e "$file" ] || printf 'apiVersion: v1\nkind: Config\nclusters:\ncontexts:\nusers:\n' > "$file"
add() { sed -i "/^- {name: $name, $2:/d; /^$1:/a - {name: $name, $2: $3}" "$file"; }
case $verb in
  set-cluster) add clusters cluster "{server: \"$server\"}" ;;
  set-credentials) add users user "{}" ;;
  set-context) add contexts context "{cluster: $name, user: $name}" ;;
  delete-cluster) sed -i "/^- {name: $name, cluster:/d" "$file" ;;
  delete-user) sed -i "/^- {name: $name, user:/d" "$file" ;;
  delete-context) sed -i "/^- {name: $name, context:/d" "$file" ;;
  *) echo "the fake does not know: $verb" >&2; exit 64 ;;
esac
"#;

/// A user's kubeconfig with a cluster of their own.
pub const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: work
clusters:
- {name: work, cluster: {server: \"https://work.example.org\"}}
contexts:
- {name: work, context: {cluster: work, user: me}}
users:
- {name: me, user: {token: secret}}
";

/// What the scripts and git need of the machine; nothing else of it is on PATH.
const NEEDED: [&str; 12] = ["cat", "date", "git", "head", "ls", "mkdir", "mv", "rm", "sed", "sh", "sleep", "tr"];

pub fn write_all(folder: &Path) {
    for name in NEEDED {
        let program = which::which(name).unwrap();
        std::os::unix::fs::symlink(program, folder.join(name)).unwrap();
    }
    write(folder, "docker", "#!/bin/sh\necho 'nobody should run this' >&2\nexit 64\n");
    write(folder, "kubectl", KUBECTL);
}

pub fn write(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}
