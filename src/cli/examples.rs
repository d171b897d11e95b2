//! Examples at the end of `--help`, for commands that have no file of their own here.

pub(super) const STATUS: &str = "Examples:
  k8tre dev status           steps, Applications and what is wrong with them
  k8tre dev status --watch   the same, live
  k8tre dev status -o json   for scripts; the exit code tells as well";

pub(super) const DOWN: &str = "Examples:
  k8tre dev down                 the only environment there is
  k8tre dev down alice --yes     without a question
  k8tre dev down --all --dry-run what would be removed";

pub(super) const LOGS: &str = "Examples:
  k8tre dev logs portal                      follow all its pods, new ones too
  k8tre dev logs portal --since 10m --no-follow
  k8tre dev logs portal --previous           what it said before it crashed";

pub(super) const OPEN: &str = "Examples:
  k8tre dev open                 Argo CD's UI
  k8tre dev open portal          an Application
  k8tre dev open portal --print  its address only, for a browser elsewhere";

pub(super) const SHELL: &str = "Examples:
  k8tre dev shell                          your shell, kubectl at its cluster
  k8tre dev shell -- kubectl get pods -A   one command";

pub(super) const KUBECONFIG: &str = "Examples:
  export KUBECONFIG=\"$(k8tre dev kubeconfig)\"
  k8tre dev kubeconfig --merge             as a context of your own kubeconfig
  k8tre dev kubeconfig --unmerge           out of it again";

pub(super) const PASSWORD: &str = "Example:
  k8tre dev password alice       the user is admin";

pub(super) const SECRETS: &str = "Examples:
  k8tre dev secrets                        their names and keys
  k8tre dev secrets --reveal=keycloak      the values of one
  k8tre dev secrets --reveal=keycloak/password";

pub(super) const RELEASE: &str = "Example:
  k8tre dev release portal       it follows the branch again";

pub(super) const LIST: &str = "Examples:
  k8tre dev ls
  k8tre dev ls -o json";

pub(super) const PAUSE: &str = "Examples:
  k8tre dev pause alice          its memory is free, all it holds stays
  k8tre dev resume alice         on again";

pub(super) const RESUME: &str = "Examples:
  k8tre dev resume alice
  k8tre dev resume --no-wait     return before the Applications are healthy";

pub(super) const EXTEND: &str = "Examples:
  k8tre dev extend 8h            the only environment there is
  k8tre dev extend alice 2d";

pub(super) const PLAN: &str = "Examples:
  k8tre dev plan --sample
  k8tre dev plan alice --skip jupyterhub -o json";

pub(super) const PREVIEW: &str = "Examples:
  k8tre dev preview                 which Applications, and why not the others
  k8tre dev preview --render        with what kustomize builds
  k8tre dev preview --against lab   beside what a live Argo CD has";

pub(super) const GRAPH: &str = "Examples:
  k8tre dev graph
  k8tre dev graph --format svg > alice.svg";

pub(super) const TIMINGS: &str = "Example:
  k8tre dev timings alice        where the last `up` spent its time";

pub(super) const DIAGNOSE: &str = "Examples:
  k8tre dev diagnose
  k8tre dev diagnose alice --file report.tar.gz";

pub(super) const LINT: &str = "Examples:
  k8tre lint                     the repository around the current folder
  k8tre lint ~/k8tre --strict    warnings fail, too";

pub(super) const CACHE: &str = "Examples:
  k8tre cache                    what is kept, and how large
  k8tre cache --clear";

pub(super) const COMPLETIONS: &str = "Examples:
  source <(k8tre completions bash)           this shell
  k8tre completions bash > ~/.local/share/bash-completion/completions/k8tre
  k8tre completions zsh > \"${fpath[1]}/_k8tre\"
  k8tre completions fish > ~/.config/fish/completions/k8tre.fish

Names of environments, Applications, apps and contexts are offered as they are
when you press the key.";

pub(super) const MAN: &str = "Example:
  k8tre man ~/.local/share/man/man1        then: man k8tre-dev-up";
