//! What the machine has and who uses it, as `/proc` tells it. Where there is no `/proc`, as on
//! macOS, every question is answered with "not known" rather than with an error.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use crate::ports::environment;
use crate::ports::process::Program;

/// A machine; tests point it at a folder of their own.
#[derive(Debug, Clone)]
pub struct Machine {
    proc_root: PathBuf,
}

/// Limits and use of inotify for one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InotifyUse {
    pub instances: u64,
    pub watches: u64,
    /// Whether every process of that user could be looked into.
    pub complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InotifyLimits {
    pub instances: u64,
    pub watches: u64,
}

/// A route of the host for IPv4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub interface: String,
    pub network: Ipv4Addr,
    pub prefix: u8,
}

/// A process, as a person would look for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub id: u32,
    pub name: String,
}

impl Machine {
    pub fn this() -> Machine {
        Machine { proc_root: PathBuf::from("/proc") }
    }

    pub fn with_proc(proc_root: impl Into<PathBuf>) -> Machine {
        Machine { proc_root: proc_root.into() }
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.proc_root.join(path)).ok()
    }

    /// Bytes that programs can still have without swapping.
    pub fn memory_available(&self) -> Option<u64> {
        let meminfo = self.read("meminfo")?;
        let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kib * 1024)
    }

    /// Bytes free for this user on the file system that holds the path.
    pub fn disk_free(&self, path: &Path) -> Option<u64> {
        let about = rustix::fs::statvfs(path).ok()?;
        Some(about.f_bavail * about.f_frsize)
    }

    pub fn inotify_limits(&self) -> Option<InotifyLimits> {
        let number = |name: &str| self.read(&format!("sys/fs/inotify/{name}"))?.trim().parse().ok();
        Some(InotifyLimits { instances: number("max_user_instances")?, watches: number("max_user_watches")? })
    }

    /// What a user's processes hold of inotify. The kernel counts per user, so that is what runs out.
    pub fn inotify_use(&self, user: u32) -> Option<InotifyUse> {
        let mut used = InotifyUse { complete: true, ..Default::default() };
        for process in self.processes()? {
            match self.user_of(process) {
                Some(owner) if owner == user => {}
                // Gone since, or another user's.
                _ => continue,
            }
            let Ok(descriptors) = fs::read_dir(self.proc_root.join(format!("{process}/fd"))) else {
                used.complete = false;
                continue;
            };
            for descriptor in descriptors.flatten() {
                let is_inotify =
                    fs::read_link(descriptor.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:inotify");
                if is_inotify {
                    used.instances += 1;
                    let about = format!("{process}/fdinfo/{}", descriptor.file_name().to_string_lossy());
                    let about = self.read(&about).unwrap_or_default();
                    used.watches += about.lines().filter(|line| line.starts_with("inotify ")).count() as u64;
                }
            }
        }
        Some(used)
    }

    fn processes(&self) -> Option<impl Iterator<Item = u32>> {
        let entries = fs::read_dir(&self.proc_root).ok()?;
        Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
    }

    fn user_of(&self, process: u32) -> Option<u32> {
        let status = self.read(&format!("{process}/status"))?;
        status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
    }

    /// Whether somebody listens on a port. Asked by trying: a port below 1024 that only root may
    /// open is not taken.
    pub fn port_taken(&self, address: SocketAddr) -> bool {
        TcpListener::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
    }

    /// A port of loopback that nobody uses now.
    pub fn free_port(&self) -> Result<u16> {
        Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
    }

    /// The process that listens on a port, where this user may know it.
    pub fn listener(&self, port: u16) -> Option<Process> {
        let inode = ["net/tcp", "net/tcp6"].iter().find_map(|table| listening_inode(&self.read(table)?, port))?;
        let socket = format!("socket:[{inode}]");
        self.processes()?.find_map(|id| {
            let mut descriptors = fs::read_dir(self.proc_root.join(format!("{id}/fd"))).ok()?.flatten();
            descriptors.find(|d| fs::read_link(d.path()).is_ok_and(|to| to.as_os_str() == socket.as_str()))?;
            Some(Process { id, name: self.read(&format!("{id}/comm")).unwrap_or_default().trim().to_owned() })
        })
    }

    /// Processes whose command line has all these words, each as an argument of its own.
    pub fn running(&self, words: &[&str]) -> Vec<Process> {
        let argv = |id: u32| fs::read(self.proc_root.join(format!("{id}/cmdline"))).unwrap_or_default();
        let has_all = |id: &u32| {
            let argv = argv(*id);
            let argv: Vec<_> = argv.split(|byte| *byte == 0).collect();
            words.iter().all(|word| argv.contains(&word.as_bytes()))
        };
        let found = self.processes().into_iter().flatten().filter(has_all);
        found
            .map(|id| Process { id, name: self.read(&format!("{id}/comm")).unwrap_or_default().trim().to_owned() })
            .collect()
    }

    /// Ends a process at once. One that is gone already is fine.
    pub fn end(&self, process: &Process) {
        if let Some(id) = rustix::process::Pid::from_raw(process.id.cast_signed()) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    }

    /// The host's own IPv4 routes, without the default route.
    pub fn routes(&self) -> Vec<Route> {
        let table = self.read("net/route").unwrap_or_default();
        table.lines().skip(1).filter_map(route).filter(|route| route.prefix > 0).collect()
    }
}

/// Columns of `/proc/net/tcp`: slot, local address, remote address, state, …, inode as the tenth.
fn listening_inode(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let local = u16::from_str_radix(columns.get(1)?.rsplit(':').next()?, 16).ok()?;
        (local == port && columns.get(3) == Some(&LISTEN)).then(|| columns.get(9).map(|inode| (*inode).to_owned()))?
    })
}

/// Columns of `/proc/net/route`: interface, destination, gateway, flags, …, mask as the eighth; the
/// addresses are in the byte order of the machine.
fn route(line: &str) -> Option<Route> {
    let columns: Vec<_> = line.split_whitespace().collect();
    let address = |text: &str| u32::from_str_radix(text, 16).ok().map(|value| Ipv4Addr::from(value.to_ne_bytes()));
    let prefix = u32::from(address(columns.get(7)?)?).count_ones() as u8;
    Some(Route { interface: (*columns.first()?).to_owned(), network: address(columns.get(1)?)?, prefix })
}

/// `172.18.0.0/16` as address and prefix.
pub fn parse_subnet(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
    Some((address.parse().ok()?, prefix))
}

/// Whether two IPv4 networks have an address in common.
pub fn overlap(a: (Ipv4Addr, u8), b: (Ipv4Addr, u8)) -> bool {
    let shorter = u32::from(a.1.min(b.1));
    let mask = u32::MAX.checked_shl(32 - shorter).unwrap_or(0);
    u32::from(a.0) & mask == u32::from(b.0) & mask
}

/// Who is at work: as the login said it, or where it said nothing, as in a container, as the system knows the account.
pub async fn account() -> Option<String> {
    if let Some(name) = ["USER", "LOGNAME"].into_iter().find_map(environment::var) {
        return Some(name);
    }
    let known = Program::new("id").arg("-un").limit(Duration::from_secs(5)).run().await.ok()?.text();
    Some(known).filter(|name| !name.is_empty())
}

/// Environment variables by which other programs are told whom to trust.
pub fn authority_variables() -> BTreeMap<&'static str, PathBuf> {
    let names = ["SSL_CERT_FILE", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];
    names.into_iter().filter_map(|name| Some((name, environment::var_os(name)?.into()))).collect()
}

/// Environment variables that make programs use a proxy, in the spelling that is set.
pub fn proxy_variables() -> BTreeMap<&'static str, String> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
    let lower = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];
    let value = |(upper, lower): (&'static str, &str)| {
        Some((upper, crate::ports::environment::var(upper).or_else(|| crate::ports::environment::var(lower))?))
    };
    names.into_iter().zip(lower).filter_map(value).collect()
}
