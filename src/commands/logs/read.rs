//! One container's log as a stream of lines.

use futures::io::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;
use tokio::sync::mpsc::Sender;

use super::line::Line;
use super::source::Source;
use crate::error::Result;
use crate::ports::kube::{Kube, LogOptions};

/// A line past this is shown in parts, so that no program can exhaust memory.
const LONG: usize = 16 << 10;

/// Where to begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start {
    /// Last lines only.
    pub tail: Option<i64>,
    /// Only what is younger, in seconds.
    pub since: Option<i64>,
    /// Only what comes after this moment.
    pub after: Option<Timestamp>,
    /// Of the last run that has ended.
    pub previous: bool,
}

/// Reads until the log ends, or the reader is gone; returns the time of the last line.
pub async fn read(
    kube: &Kube,
    source: &Source,
    start: Start,
    follow: bool,
    to: Sender<Line>,
) -> Result<Option<Timestamp>> {
    // Where nothing runs, the last run is the one that ended; what was before it is often cleaned up by then.
    let previous = start.previous && source.running;
    let options = LogOptions { follow, previous, tail: start.tail, since: start.since, after: start.after };
    let mut stream = kube.log_stream(&source.namespace, &source.pod, &source.container, options).await?;
    let mut last = start.after;
    while let Some(raw) = next_line(&mut stream).await? {
        let (time, text) = timed(&String::from_utf8_lossy(&raw));
        // The server counts in seconds: what was shown already comes once more.
        if start.after.is_some() && time.is_some() && time <= start.after {
            continue;
        }
        last = time.or(last);
        let line = Line {
            time: last,
            namespace: source.namespace.clone(),
            pod: source.pod.clone(),
            container: source.container.clone(),
            prefix: source.shown(),
            text,
        };
        if to.send(line).await.is_err() {
            break;
        }
    }
    Ok(last)
}

async fn next_line(stream: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let part = stream.fill_buf().await?;
        if part.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let take = end.unwrap_or(part.len()).min(LONG - line.len());
        line.extend_from_slice(&part[..take]);
        let ended = end == Some(take);
        stream.consume_unpin(take + usize::from(ended));
        if ended || line.len() >= LONG {
            return Ok(Some(line));
        }
    }
}

/// The server puts the time before each line.
fn timed(line: &str) -> (Option<Timestamp>, String) {
    match line.split_once(' ').map(|(time, text)| (time.parse().ok(), text)) {
        Some((Some(time), text)) => (Some(time), text.trim_end_matches('\r').to_owned()),
        _ => (None, line.trim_end_matches('\r').to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_whole_and_endless_ones_come_in_parts() {
        let long = "x".repeat(3 * LONG + 5);
        let text = format!("a\n\n{long}\nlast");
        let mut stream = futures::io::BufReader::with_capacity(7, text.as_bytes());
        let mut lengths = Vec::new();
        while let Some(line) = next_line(&mut stream).await.unwrap() {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [1, 0, LONG, LONG, LONG, 5, 4]);
    }

    #[test]
    fn the_time_is_taken_off_where_there_is_one() {
        let (time, text) = timed("2026-01-01T00:00:00.5Z hello  world\r");
        assert_eq!((time.unwrap().as_millisecond() % 1000, text.as_str()), (500, "hello  world"));
        assert_eq!(timed("no time here"), (None, "no time here".into()));
    }
}
