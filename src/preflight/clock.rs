//! Clocks: that of this machine, and that of the machine that runs Docker.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Check, Context, Finding};
use crate::error::Result;

/// Docker on this machine has the same clock; a virtual machine's stays behind when the laptop sleeps.
const ENGINE: i64 = 10;
/// The date of a server is in whole seconds, and its answer takes a while.
const WORLD: i64 = 60;

pub struct Clock;

#[async_trait]
impl Check for Clock {
    fn name(&self) -> &'static str {
        "the clock"
    }

    async fn run(&self, cx: &Context) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if let Some(skew) =
            cx.engine().and_then(|engine| engine.time).map(seconds_off).filter(|skew| skew.abs() > ENGINE)
        {
            findings.push(
                Finding::warning("clock-docker", format!("Docker's clock is {} this machine's", off(skew)))
                    .why("certificates and tokens made here are not valid yet there, or no longer")
                    .fix("restart Docker"),
            );
        }
        if let (Some(url), false) = (&cx.clock, cx.fetcher.is_offline())
            && let Some(date) = cx.fetcher.date(url).await
            && let skew = seconds_off(date)
            && skew.abs() > WORLD
        {
            let fix = match cfg!(target_os = "macos") {
                true => "sudo sntp -sS time.apple.com",
                false => "sudo timedatectl set-ntp true",
            };
            findings.push(
                Finding::warning("clock", format!("{url} is {} this machine's clock", off(skew)))
                    .why("https refuses certificates, and an environment's end and tokens are reckoned wrongly")
                    .fix(fix),
            );
        }
        Ok(findings)
    }
}

/// How far another clock is before ours.
fn seconds_off(theirs: Timestamp) -> i64 {
    theirs.duration_since(Timestamp::now()).as_secs()
}

fn off(skew: i64) -> String {
    format!("{} {}", crate::expiry::length(skew.abs()), if skew > 0 { "ahead of" } else { "behind" })
}
