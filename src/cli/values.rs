//! What people write on the command line, read: names, labels, times and sizes.

use std::time::Duration;

use crate::names::EnvName;

pub fn environment_name(text: &str) -> Result<EnvName, String> {
    text.parse().map_err(|error: crate::error::Error| {
        let hints: String = error.hints().iter().map(|hint| format!("\n  hint: {hint}")).collect();
        format!("{error}{hints}")
    })
}

/// `KEY=VALUE`, each in the form that Kubernetes labels have.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is written KEY=VALUE")?;
    if key.is_empty() {
        return Err("a label needs a key: KEY=VALUE".into());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// `REGISTRY=URL`.
pub fn mirror(text: &str) -> Result<(String, String), String> {
    let (registry, url) = text.split_once('=').ok_or("a mirror is written REGISTRY=URL")?;
    Ok((registry.to_owned(), url.to_owned()))
}

/// `90s`, `10m`, `1h 30m`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let signed: jiff::SignedDuration = text.parse().map_err(|_| "times are written as 90s, 10m or 1h 30m")?;
    Duration::try_from(signed).map_err(|_| "a time cannot be negative".to_owned())
}

/// How long an environment may be there.
pub fn life(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    let length = days.map_or_else(|| duration(text), |days| Ok(Duration::from_secs(u64::from(days) * 86_400)))?;
    if (Duration::from_secs(60)..=Duration::from_secs(90 * 24 * 3600)).contains(&length) {
        return Ok(length);
    }
    Err("an environment is meant to be there for at least 1m and at most 90d (2160h)".to_owned())
}

/// `500K`, `20M`, `1G`; a bare number is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || "sizes are written as 500K, 20M or 1G".to_owned();
    let text = text.trim().trim_end_matches(['b', 'B']).trim_end_matches('i').trim_end();
    let (number, shift) = match text.char_indices().next_back().ok_or_else(wrong)? {
        (end, 'k' | 'K') => (&text[..end], 10),
        (end, 'm' | 'M') => (&text[..end], 20),
        (end, 'g' | 'G') => (&text[..end], 30),
        _ => (text, 0),
    };
    number.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [("10", 10), ("5M", 5 << 20), ("5 MiB", 5 << 20), ("500k", 500 << 10), ("1GB", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "5X", "99999999999G", "large", "1.5M"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert!(duration("soon").is_err());
        assert!(duration("-5m").is_err());
        assert_eq!(life("3d"), Ok(Duration::from_secs(3 * 86_400)));
        assert!(life("30s").is_err() && life("91d").is_err() && life("d").is_err());
    }
}
