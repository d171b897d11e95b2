//! Holds: one Application's automatic sync off for a time, by a sync window of Argo CD's own in the environment's
//! AppProject. A window ends by itself, whoever forgets it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const MINUTE: i64 = 60;

/// When an Application is not synced by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Start of the window, on a whole minute before it was asked for.
    pub since: Timestamp,
    pub until: Timestamp,
}

/// The held Applications of an environment, by name.
pub type Holds = BTreeMap<String, Hold>;

impl Hold {
    /// Active at once, and for at least so long. A schedule knows only whole minutes, and a window begins after its
    /// first moment: so it starts a minute early.
    pub fn new(now: Timestamp, length: Duration) -> Hold {
        let since = now.as_second().div_euclid(MINUTE) * MINUTE - MINUTE;
        let end = now + length;
        let until = end.as_second().div_euclid(MINUTE) * MINUTE;
        let until = if Timestamp::constant(until, 0) < end { until + MINUTE } else { until };
        Hold { since: Timestamp::constant(since, 0), until: Timestamp::constant(until, 0) }
    }

    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now
    }

    /// The time left, as people say it.
    pub fn left(&self, now: Timestamp) -> String {
        let seconds = self.until.duration_since(now).max(SignedDuration::ZERO).as_secs();
        let minutes = (seconds + MINUTE - 1) / MINUTE;
        match (minutes / 60, minutes % 60) {
            (0, minutes) => format!("{minutes} min"),
            (hours, 0) => format!("{hours} h"),
            (hours, minutes) => format!("{hours} h {minutes} min"),
        }
    }

    /// The sync window of the AppProject. Syncs that somebody asks for by hand stay possible.
    fn window(&self, application: &str) -> Value {
        let start = self.since.to_zoned(TimeZone::UTC);
        let minutes = self.until.duration_since(self.since).as_secs() / MINUTE;
        json!({
            "kind": "deny",
            "schedule": format!("{} {} {} {} *", start.minute(), start.hour(), start.day(), start.month()),
            "duration": format!("{minutes}m"),
            "applications": [application],
            "manualSync": true,
            "timeZone": "UTC",
        })
    }
}

/// The sync windows of an environment's AppProject.
pub fn windows(holds: &Holds) -> Vec<Value> {
    holds.iter().map(|(application, hold)| hold.window(application)).collect()
}

/// Forgets what has ended: a schedule names no year, so a window that is left comes back after one.
pub fn forget_ended(holds: &mut Holds, now: Timestamp) {
    holds.retain(|_, hold| !hold.is_over(now));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether Argo CD sees a window as active: if the first start after `at - duration` lies before `at`.
    fn is_active(window: &Value, at: Timestamp) -> bool {
        let schedule: Vec<&str> = window["schedule"].as_str().unwrap().split(' ').collect();
        let [minute, hour, day, month, "*"] = schedule[..] else { panic!("{schedule:?}") };
        let number = |text: &str| text.parse::<i8>().unwrap();
        let minutes: i64 = window["duration"].as_str().unwrap().trim_end_matches('m').parse().unwrap();
        let after = at - SignedDuration::from_mins(minutes);
        let year = after.to_zoned(TimeZone::UTC).year();
        let starts = (year..year + 9).filter_map(|year| {
            let date = jiff::civil::Date::new(year, number(month), number(day)).ok()?;
            Some(date.at(number(hour), number(minute), 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp())
        });
        starts.into_iter().find(|start| *start > after).is_some_and(|start| start < at)
    }

    proptest! {
        #[test]
        fn a_hold_is_active_at_once_for_its_whole_time_and_not_after_it(
            second in 1_700_000_000_i64..4_000_000_000,
            nanosecond in 0_i32..1_000_000_000,
            length in 1_u64..=86_400,
            within in 0.0_f64..1.0,
        ) {
            let now = Timestamp::new(second, nanosecond).unwrap();
            let hold = Hold::new(now, Duration::from_secs(length));
            let window = hold.window("portal-alice");
            let later = |seconds: i64| now + SignedDuration::from_secs(seconds);
            prop_assert!(is_active(&window, now), "{window} at {now}");
            prop_assert!(!hold.is_over(now));
            let during = later((length as f64 * within) as i64);
            prop_assert!(is_active(&window, during), "{window} at {during}");
            prop_assert!(!is_active(&window, hold.until), "{window} at {}", hold.until);
            prop_assert!(hold.is_over(hold.until));
            prop_assert!(hold.until >= later(length as i64) && hold.until <= later(length as i64 + 60));
            let start = hold.since - SignedDuration::from_secs(1);
            prop_assert!(!is_active(&window, start), "{window} at {start}");
            prop_assert!(!is_active(&window, hold.until + SignedDuration::from_hours(24 * 300)));
        }
    }

    #[test]
    fn the_window_names_one_minute_of_the_year_in_utc() {
        let hold = Hold::new("2026-12-31T23:59:30Z".parse().unwrap(), Duration::from_secs(7200));
        assert_eq!(
            hold.window("portal-alice"),
            json!({
                "kind": "deny", "schedule": "58 23 31 12 *", "duration": "122m", "applications": ["portal-alice"],
                "manualSync": true, "timeZone": "UTC"
            })
        );
        assert_eq!(hold.until, "2027-01-01T02:00:00Z".parse().unwrap());
    }

    #[test]
    fn the_time_left_is_said_in_whole_minutes() {
        let now: Timestamp = "2026-05-01T12:00:30Z".parse().unwrap();
        for (until, left) in
            [("12:00:59", "1 min"), ("13:00:30", "1 h"), ("14:20:30", "2 h 20 min"), ("11:00:00", "0 min")]
        {
            let until: Timestamp = format!("2026-05-01T{until}Z").parse().unwrap();
            assert_eq!(Hold { since: now, until }.left(now), left, "{until}");
        }
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let ended = Hold { since: now - SignedDuration::from_hours(3), until: now };
        let mut holds = Holds::from([("a".into(), ended), ("b".into(), Hold::new(now, Duration::from_secs(60)))]);
        forget_ended(&mut holds, now);
        assert_eq!(holds.keys().collect::<Vec<_>>(), ["b"]);
    }
}
