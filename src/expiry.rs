//! When an environment ends: a time that is kept in its journal and written on all that it makes, so that what is
//! forgotten can be told from what is in use. Pure.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// Annotation of what an environment has in an Argo CD.
pub const EXPIRES: &str = "k8tre.dev/expires";
/// Trailer of the commits that k8tre makes on the developer's branch.
pub const TRAILER: &str = "K8tre-Expires";

/// The moment that is so far away, in whole seconds, which every mark can hold.
pub fn after(from: Timestamp, length: Duration) -> Timestamp {
    let length = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(from.as_second().saturating_add(length)).unwrap_or(Timestamp::MAX)
}

pub fn is_over(expires: Option<Timestamp>, now: Timestamp) -> bool {
    expires.is_some_and(|expires| expires <= now)
}

/// What an object says of its end.
pub fn of(object: &Value) -> Option<Timestamp> {
    object["metadata"]["annotations"][EXPIRES].as_str()?.parse().ok()
}

/// The object with its end written on it, if there is one.
pub fn stamped(mut object: Value, expires: Option<Timestamp>) -> Value {
    if let Some(expires) = expires {
        object["metadata"]["annotations"][EXPIRES] = json!(expires.to_string());
    }
    object
}

/// As people say it, after "it".
pub fn shown(expires: Timestamp, now: Timestamp) -> String {
    let at = expires.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z").to_string();
    let left = expires.duration_since(now).as_secs();
    match left {
        ..=0 => format!("expired {} ago, at {at}", length(-left)),
        _ => format!("expires in {}, at {at}", length(left)),
    }
}

/// A length of time in one unit.
pub fn length(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_from_its_moment_on_and_never_without_one() {
        let now = Timestamp::from_second(1000).unwrap();
        let end = after(now, Duration::from_secs(60));
        assert!(!is_over(Some(end), now) && is_over(Some(end), end) && !is_over(None, Timestamp::MAX));
        assert!(shown(end, now).starts_with("expires in 1 min, at 1970-01-01"));
        assert!(shown(end, after(end, Duration::from_secs(7200))).starts_with("expired 2 h ago"));
        assert_eq!(after(now, Duration::MAX), Timestamp::MAX);
    }

    #[test]
    fn an_object_says_what_was_written_on_it() {
        let end = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(of(&stamped(json!({"metadata": {}}), Some(end))), Some(end));
        assert_eq!(of(&stamped(json!({"metadata": {}}), None)), None);
    }
}
