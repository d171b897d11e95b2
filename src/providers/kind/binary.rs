//! The kind program: the one on PATH if it is new enough, else one fetched and pinned.

use std::path::{Path, PathBuf};
use std::time::Duration;

use semver::Version;

use crate::error::{Error, Result, ResultExt};
use crate::ports::environment;
use crate::ports::fetch::{Checksum, Fetcher, Wanted};
use crate::ports::process::Program;

/// The oldest kind whose configuration and node images k8tre knows.
pub const MINIMUM: Version = Version::new(0, 30, 0);
/// The kind that is fetched. Its SHA-256 for each platform is in [`pinned`].
pub const FETCHED: Version = Version::new(0, 33, 0);

const RELEASES: &str = "https://github.com/kubernetes-sigs/kind/releases/download";
const SIZE_LIMIT: u64 = 64 << 20;

/// A kind that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindProgram {
    pub path: PathBuf,
    pub version: Version,
    /// Whether it came from the network, into the cache folder.
    pub fetched: bool,
}

/// The kind on PATH, whatever its version.
pub async fn on_path() -> Result<Option<KindProgram>> {
    match which::which("kind") {
        Ok(path) => Ok(Some(KindProgram { version: version_of(&path).await?, path, fetched: false })),
        Err(_) => Ok(None),
    }
}

/// The kind on PATH if it is new enough, else the fetched one.
pub async fn ensure(fetcher: &Fetcher) -> Result<KindProgram> {
    let wanted = wanted(&FETCHED, std::env::consts::OS, std::env::consts::ARCH)?;
    choose(on_path().await, &wanted, fetcher).await
}

/// What was found if it is new enough, else what is wanted. A broken kind on PATH is no reason to
/// fail where a good one can be had.
pub async fn choose(found: Result<Option<KindProgram>>, wanted: &Wanted, fetcher: &Fetcher) -> Result<KindProgram> {
    let why = match found {
        Ok(Some(found)) if found.version >= MINIMUM => return Ok(found),
        Ok(Some(old)) => format!("kind {} at {} is older than {MINIMUM}", old.version, old.path.display()),
        Ok(None) => "kind is not on PATH".to_owned(),
        Err(error) => format!("the kind on PATH does not work ({error})"),
    };
    let path = fetcher.get(wanted).await.context(why).hint(format!("go install sigs.k8s.io/kind@v{FETCHED}"))?;
    Ok(KindProgram { version: version_of(&path).await?, path, fetched: true })
}

/// What to fetch for a platform. `K8TRE_KIND_URL` names a mirror of the release folders.
pub fn wanted(version: &Version, os: &str, arch: &str) -> Result<Wanted> {
    let platform = match (os, arch) {
        ("linux", "x86_64") => "linux-amd64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "darwin-amd64",
        ("macos", "aarch64") => "darwin-arm64",
        _ => {
            return Err(Error::failed(format!("there is no kind to fetch for {os} on {arch}"))
                .hint("install kind so that it is on PATH"));
        }
    };
    let url = format!("{}/v{version}/kind-{platform}", releases().trim_end_matches('/'));
    let sha256 = match pinned(version, platform) {
        Some(known) => Checksum::Known(known.to_owned()),
        None => Checksum::FromPublisher(format!("{url}.sha256sum")),
    };
    Ok(Wanted { url, sha256, name: format!("kind-v{version}-{platform}"), limit: SIZE_LIMIT, executable: true })
}

/// Where kind's releases are fetched from.
pub fn releases() -> String {
    environment::var("K8TRE_KIND_URL").unwrap_or_else(|| RELEASES.to_owned())
}

fn pinned(version: &Version, platform: &str) -> Option<&'static str> {
    if *version != FETCHED {
        return None;
    }
    Some(match platform {
        "linux-amd64" => "aee6151561422756b764a4ae28e7f44cda5af5a9eead3cc9985112b1de8d8e0d",
        "linux-arm64" => "20022bee6cfcd5086cb7234d218e3454e6090022f2a8f55d1fa7fcf42c3867a2",
        "darwin-amd64" => "5a99f26f57246dc9319dd294803313197a0f34d33c525b3ea8b655db5916ece0",
        "darwin-arm64" => "0c8c7dbe5e23594a198b786c4bc13dacc101fa6196b0cb0b23a1ca44e61f4b4f",
        _ => return None,
    })
}

async fn version_of(path: &Path) -> Result<Version> {
    let output = Program::new(path).arg("version").limit(Duration::from_secs(10)).run().await?;
    version_in(&output.text()).ok_or_else(|| {
        Error::failed(format!("{} says of its version: {}", path.display(), crate::text::one_line(&output.text(), 80)))
    })
}

/// `kind v0.33.0 go1.26.0 linux/amd64`, or a development build `v0.34.0-alpha+1234`.
fn version_in(text: &str) -> Option<Version> {
    text.split_whitespace().find_map(|word| Version::parse(word.strip_prefix('v')?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_kind_prints_them() {
        assert_eq!(version_in("kind v0.33.0 go1.26.0 linux/amd64"), Some(Version::new(0, 33, 0)));
        assert_eq!(version_in("kind v0.34.0-alpha+abc go1.26 linux/amd64").unwrap().pre.as_str(), "alpha");
        assert_eq!(version_in("nonsense"), None);
    }

    #[test]
    fn every_supported_platform_has_a_pin() {
        for (os, arch) in [("linux", "x86_64"), ("linux", "aarch64"), ("macos", "x86_64"), ("macos", "aarch64")] {
            let wanted = wanted(&FETCHED, os, arch).unwrap();
            assert!(matches!(wanted.sha256, Checksum::Known(hex) if hex.len() == 64), "{os} {arch}");
        }
        assert!(wanted(&FETCHED, "plan9", "mips").is_err());
    }

    #[test]
    fn another_version_is_checked_with_the_publishers_file() {
        let other = wanted(&Version::new(0, 99, 0), "linux", "x86_64").unwrap();
        assert!(matches!(other.sha256, Checksum::FromPublisher(url) if url.ends_with("kind-linux-amd64.sha256sum")));
    }
}
