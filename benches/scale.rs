//! How the preview grows with a repository: 10, 100 and 1,000 ApplicationSets for 200 clusters.
//!
//!     cargo bench --bench scale
//!
//! Makes each repository, commits it, and measures two things in a process of their own: the prediction of what main
//! serves on 200 clusters (reading the commit, building the kustomizations, every generator and template), and
//! `k8tre dev preview`, which adds a developer's overlay and predicts for the developer's cluster. Fails when a limit is
//! passed or the time grows faster than the repository.

// A benchmark starts programs and prints.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use k8tre::gitops::predict::{Cluster, predict};
use k8tre::gitops::repository::Repository;
use k8tre::ports::git::Checkout;

const SIZES: [usize; 3] = [10, 100, 1_000];
const CLUSTERS: usize = 200;
const LIMIT: Duration = Duration::from_secs(2);
const LIMIT_MB: u64 = 300;
/// Ten times the repository may take so many times as long.
const GROWTH: f64 = 15.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--predict") {
        let applications = predicted(Path::new(&arguments[at + 1]));
        println!("{applications}");
        return;
    }
    let root = tempfile::tempdir().expect("a temporary folder");
    println!("{:>6}  {:<22} {:>12} {:>9} {:>8}", "sets", "what", "Applications", "seconds", "peak MB");
    let mut passed = true;
    let mut before: [Option<f64>; 2] = [None, None];
    for size in SIZES {
        let repo = root.path().join(size.to_string());
        repository(&repo, size);
        let myself = std::env::current_exe().expect("a running program has a path");
        let repo_text = repo.to_string_lossy().into_owned();
        let preview = ["dev", "preview", "alice", "--repo", &repo_text, "--vendor", "k3s", "-o", "json"];
        let programs: [(&str, PathBuf, Vec<&str>); 2] = [
            ("predict, 200 clusters", myself, vec!["--predict", &repo_text]),
            ("k8tre dev preview", env!("CARGO_BIN_EXE_k8tre").into(), preview.to_vec()),
        ];
        for (number, (what, program, arguments)) in programs.into_iter().enumerate() {
            // The best of three: somebody else may use the machine.
            let runs: Vec<Run> = (0..3).map(|_| run(root.path(), &program, &arguments)).collect();
            let best = runs.iter().min_by_key(|run| run.took).expect("three runs");
            let peak = runs.iter().map(|run| run.peak_mb).max().unwrap_or_default();
            let seconds = best.took.as_secs_f64();
            println!("{size:>6}  {what:<22} {:>12} {seconds:>9.3} {peak:>8}", best.applications);
            passed &= best.took < LIMIT && peak < LIMIT_MB;
            // What takes a few hundredths of a second is mostly the start of the program.
            let grown = before[number].replace(seconds).map_or(0.0, |before| seconds / before.max(0.02));
            if grown > GROWTH {
                println!("        grew {grown:.1} times for ten times the repository");
                passed = false;
            }
        }
    }
    assert!(passed, "the limits are {LIMIT:?}, {LIMIT_MB} MB, and {GROWTH} times for ten times the repository");
}

struct Run {
    took: Duration,
    peak_mb: u64,
    applications: usize,
}

fn run(root: &Path, program: &Path, arguments: &[&str]) -> Run {
    let output = root.join("output");
    let file = fs::File::create(&output).expect("a file in the temporary folder");
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    command.env("K8TRE_DATA_DIR", root.join("data")).env("K8TRE_CONFIG_DIR", root.join("config"));
    let mut child = command.spawn().expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("our own child").is_none() {
        // The kernel keeps the highest mark; it is read until it is gone.
        let high = fs::read_to_string(&status).unwrap_or_default();
        let kilobytes =
            high.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = kilobytes.unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = start.elapsed();
    let text = fs::read_to_string(&output).expect("the output is there");
    let applications = match text.trim().parse() {
        Ok(count) => count,
        Err(_) => {
            let report: serde_json::Value = serde_json::from_str(&text).expect("a number, or what preview prints");
            report["applications"].as_array().map_or(0, Vec::len)
        }
    };
    assert!(applications > 0, "{} made no Application", program.display());
    Run { took, peak_mb: peak / 1024, applications }
}

fn predicted(repo: &Path) -> usize {
    let checkout = Checkout::open(repo).expect("a repository");
    let tree = checkout.tree(checkout.head().expect("a commit")).expect("its tree");
    let clusters: Vec<Cluster> = (0..CLUSTERS)
        .map(|number| {
            let label = |key: &str, value: String| (key.to_owned(), value);
            Cluster {
                name: format!("cluster-{number}"),
                server: format!("https://10.0.{}.{}", number / 250, number % 250),
                labels: [
                    label("environment", ["dev", "stg", "prd"][number % 3].into()),
                    label("vendor", ["k3s", "aws"][number % 2].into()),
                    label("external-domain", format!("c{number}.example")),
                    label("skip-a7", (number % 5 == 0).to_string()),
                ]
                .into(),
                ..Cluster::default()
            }
        })
        .collect();
    let repository = Repository::read(&tree).expect("a TRE repository");
    predict(&repository, &tree, &clusters).applications.len()
}

/// ApplicationSets as the K8TRE repository has them, in its layout: three environments, some by vendor, some from files.
fn repository(repo: &Path, sets: usize) {
    const URL: &str = "https://git.example/tre.git";
    let write = |path: String, text: String| {
        let file = repo.join(path);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    };
    write(
        "app_of_apps/root-app-of-apps.yaml".into(),
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: root}}\nspec:\n  source: {{repoURL: {URL}, targetRevision: main, path: appsets}}\n"
        ),
    );
    let mut resources = String::from("resources:\n");
    for number in 0..sets {
        let vendors: &[&str] = if number % 3 == 0 { &["k3s/", "aws/"] } else { &[""] };
        let (pattern, env) = if vendors.len() > 1 { ("*/envs/*", 4) } else { ("envs/*", 3) };
        let vendor = if vendors.len() > 1 { "vendor: '{{index .path.segments 2}}'" } else { "" };
        let source = match number % 10 {
            9 => format!("files: [{{path: 'apps/a{number}/{pattern}/kustomization.yaml'}}]"),
            _ => format!("directories: [{{path: 'apps/a{number}/{pattern}'}}]"),
        };
        resources.push_str(&format!("- a{number}.yaml\n"));
        write(
            format!("appsets/a{number}.yaml"),
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: a{number}, namespace: argocd}}\nspec:\n  \
                 goTemplate: true\n  goTemplateOptions: [missingkey=error]\n  generators:\n  - matrix:\n      generators:\n      \
                 - git: {{repoURL: {URL}, revision: main, {source}}}\n      - clusters:\n          selector:\n            \
                 matchLabels: {{environment: '{{{{index .path.segments {env}}}}}', {vendor}}}\n            matchExpressions: \
                 [{{key: skip-a{number}, operator: NotIn, values: ['true']}}]\n  template:\n    metadata:\n      name: \
                 '{{{{index .path.segments 1}}}}-{{{{.nameNormalized}}}}'\n    spec:\n      project: default\n      source:\n        \
                 repoURL: {URL}\n        targetRevision: main\n        path: '{{{{.path.path}}}}'\n        plugin:\n          \
                 name: kustomize-with-envsubst-v1.0\n          env:\n          - {{name: ENVIRONMENT, value: '{{{{index \
                 .path.segments {env}}}}}'}}\n          - {{name: DOMAIN, value: '{{{{index .metadata.labels \
                 \"external-domain\"}}}}'}}\n      destination: {{server: '{{{{.server}}}}', namespace: a{number}}}\n      \
                 syncPolicy: {{automated: {{prune: true}}, syncOptions: [CreateNamespace=true]}}\n"
            )
            .replace(", }", "}"),
        );
        for vendor in vendors {
            for env in ["dev", "stg", "prd"] {
                write(
                    format!("apps/a{number}/{vendor}envs/{env}/kustomization.yaml"),
                    "resources: [../../base]\n".into(),
                );
            }
        }
    }
    write("appsets/kustomization.yaml".into(), resources);
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "All"],
    ] {
        let git = Command::new("git")
            .args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"])
            .args(arguments)
            .current_dir(repo)
            .status();
        assert!(git.expect("git starts").success(), "git {arguments:?}");
    }
}
