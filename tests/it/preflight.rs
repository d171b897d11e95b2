//! Every finding of the preflight, produced on purpose.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

use k8tre::error::{Error, Result};
use k8tre::ports::docker::{Docker, EngineInfo};
use k8tre::ports::fetch::Fetcher;
use k8tre::ports::machine::Machine;
use k8tre::preflight::{Context, Finding, Plan, Severity, ports, run, verdict};
use serde_json::json;

use crate::support::fake_docker::FakeDocker;

/// A machine on which nothing is wrong.
pub fn healthy_proc() -> tempfile::TempDir {
    let proc = tempfile::tempdir().unwrap();
    write(proc.path(), "meminfo", "MemTotal: 33554432 kB\nMemAvailable:   25165824 kB\n");
    write(proc.path(), "sys/fs/inotify/max_user_instances", "512\n");
    write(proc.path(), "sys/fs/inotify/max_user_watches", "524288\n");
    write(
        proc.path(),
        "net/route",
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n",
    );
    proc
}

fn write(root: &Path, name: &str, content: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A process of root that holds so many inotify instances with so many watches each.
fn add_process(proc: &Path, id: u32, instances: u32, watches: usize) {
    write(proc, &format!("{id}/status"), "Name:\tx\nUid:\t0\t0\t0\t0\n");
    fs::create_dir_all(proc.join(format!("{id}/fd"))).unwrap();
    for fd in 0..instances {
        symlink("anon_inode:inotify", proc.join(format!("{id}/fd/{fd}"))).unwrap();
        write(proc, &format!("{id}/fdinfo/{fd}"), &format!("pos: 0\n{}", "inotify wd:1 ino:2\n".repeat(watches)));
    }
}

fn plan() -> Plan {
    Plan {
        owner: k8tre::providers::kind::Owner { environment: "alice".into(), id: "1".into() },
        cluster: "k8tre-alice".into(),
        node_image: "kindest/node:v1.34.4".into(),
        nodes: 1,
        ports: Vec::new(),
    }
}

pub async fn context(docker: &FakeDocker, proc: &Path) -> Context {
    let connected = docker.connect().await;
    let info = connected.info().await.unwrap();
    around(Ok((connected, info)), proc)
}

fn around(docker: Result<(Docker, EngineInfo)>, proc: &Path) -> Context {
    Context {
        machine: Machine::with_proc(proc),
        docker,
        proxies: BTreeMap::new(),
        authorities: BTreeMap::new(),
        ca_bundle: None,
        fetcher: Fetcher::new(proc).proxies(BTreeMap::new()),
        nodes_here: true,
        plan: Some(plan()),
        meant: None,
        checkout: None,
        contexts: Ok(Vec::new()),
        clock: None,
    }
}

pub fn find<'a>(findings: &'a [Finding], code: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.code == code)
}

/// The finding of this code, which must be there and complete.
#[track_caller]
pub fn must<'a>(findings: &'a [Finding], code: &str, severity: Severity) -> &'a Finding {
    let finding = find(findings, code).unwrap_or_else(|| panic!("no {code} in {findings:#?}"));
    assert_eq!(finding.severity, severity, "{finding:?}");
    assert!(!finding.what.is_empty() && !finding.why.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    finding
}

#[tokio::test]
async fn a_good_machine_has_no_finding_that_stops_up() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    let findings = run(&context(&docker, proc.path()).await).await;
    // Whether docker, git and kind are on PATH is the test machine's own matter.
    let own = ["docker-program-missing", "git", "kind", "disk"];
    let others: Vec<_> = findings.iter().filter(|finding| !own.contains(&finding.code)).collect();
    assert!(others.is_empty(), "{others:#?}");
}

#[tokio::test]
async fn without_docker_that_is_said_and_the_rest_is_still_checked() {
    let proc = healthy_proc();
    let error = Error::failed("Docker at unix:///x does not answer").hint("sudo systemctl start docker");
    let proxies = BTreeMap::from([("HTTPS_PROXY", "http://127.0.0.1:1".to_owned())]);
    let cx = Context { proxies, ..around(Err(error), proc.path()) };
    let findings = run(&cx).await;
    let finding = must(&findings, "docker-unreachable", Severity::Blocker);
    assert_eq!(finding.fix, "sudo systemctl start docker");
    must(&findings, "proxy", Severity::Warning);
    let error = verdict(&findings).unwrap_err();
    assert_eq!(error.exit_code(), 5);
    assert!(error.hints().contains(&"sudo systemctl start docker".to_owned()));
}

#[tokio::test]
async fn engines_that_cannot_do_it_are_refused() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    docker.change(|world| {
        world.info["ServerVersion"] = json!("19.03.15");
        world.info["OSType"] = json!("windows");
    });
    let findings = run(&context(&docker, proc.path()).await).await;
    assert!(must(&findings, "docker-too-old", Severity::Blocker).what.contains("19.03.15"));
    must(&findings, "docker-windows-containers", Severity::Blocker);
}

#[tokio::test]
async fn cgroup_v1_stops_what_cannot_run_on_it() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    docker.change(|world| world.info["CgroupVersion"] = json!("1"));
    let mut cx = context(&docker, proc.path()).await;
    must(&run(&cx).await, "cgroup-v1", Severity::Info);
    cx.plan.as_mut().unwrap().node_image = "kindest/node:v1.35.8@sha256:00".into();
    must(&run(&cx).await, "cgroup-v1", Severity::Blocker);
    docker.change(|world| world.info["SecurityOptions"] = json!(["name=seccomp", "name=rootless"]));
    must(&run(&context(&docker, proc.path()).await).await, "cgroup-rootless", Severity::Blocker);
}

#[tokio::test]
async fn dockers_own_memory_counts_where_this_machines_is_not_known() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    docker.change(|world| {
        world.info["OperatingSystem"] = json!("Docker Desktop");
        world.info["MemTotal"] = json!(2u64 << 30);
    });
    let finding = run(&context(&docker, proc.path()).await).await;
    assert!(must(&finding, "memory", Severity::Warning).what.contains("2.0 GiB"));
    docker.change(|world| world.info["MemTotal"] = json!(1u64 << 30));
    must(&run(&context(&docker, proc.path()).await).await, "memory", Severity::Blocker);
}

#[tokio::test]
async fn a_dead_and_a_loopback_proxy_and_a_missing_bypass_are_warned_of() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    let mut cx = context(&docker, proc.path()).await;
    cx.proxies = BTreeMap::from([("HTTPS_PROXY", "http://me:secret@127.0.0.1:1".to_owned())]);
    let findings = run(&cx).await;
    assert!(must(&findings, "proxy", Severity::Warning).what.contains("http://***@127.0.0.1:1"));
    must(&findings, "proxy-loopback", Severity::Warning);
    must(&findings, "no-proxy", Severity::Warning);
    assert!(!format!("{findings:?}").contains("secret"));
    assert!(verdict(&findings).is_ok() || find(&findings, "docker-program-missing").is_some());

    cx.proxies.insert("NO_PROXY", "localhost,127.0.0.1".into());
    assert!(find(&run(&cx).await, "no-proxy").is_none());
}

#[tokio::test]
async fn a_cluster_of_that_name_that_is_not_ours_stops_up() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    docker.add_node("k8tre-alice", "control-plane", None, "running", false);
    let finding = run(&context(&docker, proc.path()).await).await;
    assert!(must(&finding, "cluster-foreign", Severity::Blocker).fix.contains("kind delete cluster"));
}

#[tokio::test]
async fn the_holder_of_a_port_is_named_and_a_free_one_is_chosen() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    docker.add(json!({"name": "web", "labels": {}, "state": "running", "ports": [{"public": 48080, "private": 80}]}));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    let mut cx = context(&docker, proc.path()).await;
    cx.machine = Machine::this();
    cx.plan.as_mut().unwrap().ports = vec![48080, taken];
    let findings = run(&cx).await;
    let said: Vec<_> = findings.iter().filter(|f| f.code == "port-taken").map(|f| f.what.as_str()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0], "port 48080 is taken by the container web");
    if cfg!(target_os = "linux") {
        assert!(said[1].contains(&format!("process {}", std::process::id())), "{said:?}");
    }

    let connected = docker.connect().await;
    let other = ports::choose(&Machine::this(), &connected, "k8tre-alice", taken, false).await.unwrap();
    assert_ne!(other, taken);
    assert!(TcpListener::bind(("127.0.0.1", other)).is_ok());
    let error = ports::choose(&Machine::this(), &connected, "k8tre-alice", taken, true).await.unwrap_err();
    assert_eq!(error.exit_code(), 5);
}

#[tokio::test]
async fn a_port_of_the_cluster_itself_is_not_taken() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    docker.add(json!({
        "name": "k8tre-alice-control-plane", "state": "running", "ports": [{"public": 48081, "private": 80}],
        "labels": {"io.x-k8s.kind.cluster": "k8tre-alice"}, "mounts": [{"destination": "/k8tre/owner/alice/1"}],
        "files": ["/k8tre/whole"],
    }));
    let mut cx = context(&docker, proc.path()).await;
    cx.plan.as_mut().unwrap().ports = vec![48081];
    assert!(find(&run(&cx).await, "port-taken").is_none());
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    #[tokio::test]
    async fn inotify_blocks_only_when_too_little_is_free() {
        let (docker, proc) = (FakeDocker::start().await, healthy_proc());
        write(proc.path(), "sys/fs/inotify/max_user_instances", "128\n");
        add_process(proc.path(), 10, 20, 2);
        let findings = run(&context(&docker, proc.path()).await).await;
        let finding = must(&findings, "inotify", Severity::Warning);
        assert!(finding.fix.contains("fs.inotify.max_user_instances=512"), "{finding:?}");

        add_process(proc.path(), 11, 100, 2);
        let findings = run(&context(&docker, proc.path()).await).await;
        let finding = must(&findings, "inotify", Severity::Blocker);
        assert!(finding.what.contains("is 128, and 120 are in use"), "{finding:?}");
    }

    #[tokio::test]
    async fn watches_are_counted_too() {
        let (docker, proc) = (FakeDocker::start().await, healthy_proc());
        write(proc.path(), "sys/fs/inotify/max_user_watches", "1000\n");
        add_process(proc.path(), 10, 1, 900);
        let findings = run(&context(&docker, proc.path()).await).await;
        let finding = must(&findings, "inotify", Severity::Blocker);
        assert!(finding.what.contains("max_user_watches is 1000, and 900 are in use"), "{finding:?}");
    }

    #[tokio::test]
    async fn little_memory_of_this_machine_is_warned_of_and_very_little_refused() {
        let (docker, proc) = (FakeDocker::start().await, healthy_proc());
        write(proc.path(), "meminfo", "MemAvailable: 2097152 kB\n");
        let findings = run(&context(&docker, proc.path()).await).await;
        assert!(must(&findings, "memory", Severity::Warning).what.contains("2.0 GiB of memory free"));
        write(proc.path(), "meminfo", "MemAvailable: 524288 kB\n");
        must(&run(&context(&docker, proc.path()).await).await, "memory", Severity::Blocker);
    }

    #[tokio::test]
    async fn a_vpn_in_the_way_of_kinds_subnet_is_named() {
        let (docker, proc) = (FakeDocker::start().await, healthy_proc());
        let network =
            json!({"Id": "0123456789abcdef", "Name": "kind", "IPAM": {"Config": [{"Subnet": "172.18.0.0/16"}]}});
        docker.change(|world| world.networks.push(network));
        let header = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n";
        let route = |interface: &str, network: [u8; 4], mask: [u8; 4]| {
            let hex = |bytes| format!("{:08X}", u32::from_ne_bytes(bytes));
            format!("{interface}\t{}\t00000000\t0001\t0\t0\t0\t{}\n", hex(network), hex(mask))
        };
        let own = route("br-0123456789ab", [172, 18, 0, 0], [255, 255, 0, 0]);
        let default = route("eth0", [0, 0, 0, 0], [0, 0, 0, 0]);
        write(proc.path(), "net/route", &format!("{header}{default}{own}"));
        assert!(find(&run(&context(&docker, proc.path()).await).await, "subnet-overlap").is_none());

        let wide = route("tun0", [172, 16, 0, 0], [255, 240, 0, 0]);
        write(proc.path(), "net/route", &format!("{header}{default}{own}{wide}"));
        let findings = run(&context(&docker, proc.path()).await).await;
        let finding = must(&findings, "subnet-overlap", Severity::Warning);
        assert!(finding.what.contains("172.16.0.0/12 through tun0"), "{finding:?}");

        let narrow = route("tun0", [172, 18, 4, 0], [255, 255, 255, 0]);
        write(proc.path(), "net/route", &format!("{header}{default}{own}{narrow}"));
        must(&run(&context(&docker, proc.path()).await).await, "subnet-overlap", Severity::Blocker);
    }
}

#[tokio::test]
async fn a_machine_without_proc_gives_no_false_alarm() {
    let docker = FakeDocker::start().await;
    let findings = run(&context(&docker, Path::new("/nowhere")).await).await;
    for code in ["inotify", "subnet-overlap", "unchecked"] {
        assert!(find(&findings, code).is_none(), "{findings:#?}");
    }
}

#[tokio::test]
async fn a_check_that_cannot_be_made_says_so() {
    let (docker, proc) = (FakeDocker::start().await, healthy_proc());
    let cx = context(&docker, proc.path()).await;
    docker.change(|world| world.hang_on = Some("/containers/json".into()));
    let findings = run(&cx).await;
    let finding = find(&findings, "unchecked").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.what.contains("the cluster's name"), "{finding:?}");
}
