//! `k8tre dev timings`: the last `up` that changed something, as bars over time.

use owo_colors::{OwoColorize, Style};
use serde::Serialize;

use crate::cli::NameArgs;
use crate::commands::{App, select};
use crate::error::{Error, Result};
use crate::journal::Timing;
use crate::names::EnvName;
use crate::report::SCHEMA;

/// Two times that are this close are the end of one step and the start of the next.
const NEAR: f64 = 0.05;
/// Narrower bars than this show nothing.
const NARROW: usize = 10;

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    environment: EnvName,
    seconds: f64,
    steps: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    began: f64,
    seconds: f64,
    /// Whether the whole would have been quicker had this one been quicker.
    critical: bool,
}

pub fn run(app: &App, args: &NameArgs) -> Result<u8> {
    let name = select::existing_name(app, args)?;
    let timings = select::journal_of(app, &name)?.facts.timings;
    if timings.is_empty() {
        return Err(Error::failed(format!("no `up` of {name} that changed something has ended yet"))
            .hint(format!("k8tre dev up {name}")));
    }
    let report = report(name, &timings);
    match app.ui.is_json() {
        true => app.ui.json(&report)?,
        false => app.ui.data(&draw(&report, app.ui.width(), app.ui.is_unicode())),
    }
    Ok(0)
}

fn report(environment: EnvName, timings: &[Timing]) -> Report {
    let end = |one: &Timing| one.began + one.took;
    let mut timings = timings.to_vec();
    timings.sort_by(|a, b| a.began.total_cmp(&b.began));
    // From what ended last backwards: each time to what it can have waited for.
    let mut critical = vec![false; timings.len()];
    let mut before = f64::INFINITY;
    while let Some((at, one)) = timings
        .iter()
        .enumerate()
        .filter(|(at, one)| !critical[*at] && end(one) <= before)
        .max_by(|(_, a), (_, b)| end(a).total_cmp(&end(b)))
    {
        critical[at] = true;
        before = one.began + NEAR;
        if one.began < NEAR {
            break;
        }
    }
    let rows = timings.iter().zip(critical);
    Report {
        schema: SCHEMA,
        environment,
        seconds: timings.iter().map(end).fold(0.0, f64::max),
        steps: rows
            .map(|(one, critical)| Row { id: one.step.clone(), began: one.began, seconds: one.took, critical })
            .collect(),
    }
}

fn draw(report: &Report, width: usize, unicode: bool) -> String {
    let label = report.steps.iter().map(|row| row.id.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + 11);
    let mut lines = vec![format!("the last up of {} took {:.1} s", report.environment, report.seconds), String::new()];
    let (strong, weak) = if unicode { ("█", "░") } else { ("#", "-") };
    for row in &report.steps {
        let time = format!("{:>6.1} s", row.seconds);
        let head = format!("{:<label$} {}", row.id, time.style(Style::new().dimmed()));
        if room < NARROW {
            lines.push(head);
            continue;
        }
        let cell = |seconds: f64| (seconds / report.seconds.max(0.001) * room as f64).round() as usize;
        let from = cell(row.began).min(room - 1);
        let long = cell(row.began + row.seconds).min(room).saturating_sub(from).max(1);
        let (fill, style) = if row.critical { (strong, Style::new().yellow()) } else { (weak, Style::new().cyan()) };
        lines.push(format!("{head}  {}{}", " ".repeat(from), fill.repeat(long).style(style)));
    }
    if room >= NARROW {
        lines.push(format!("{}  {}", " ".repeat(label + 9), scale(report.seconds, room)));
        lines.push(String::new());
        lines.push(format!("{strong} what the whole had to wait for, one after the other; {weak} what ran beside it"));
    }
    lines.join("\n")
}

/// Seconds below the bars, as many as there is room for.
fn scale(seconds: f64, room: usize) -> String {
    let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0]
        .into_iter()
        .find(|step| step / seconds.max(0.001) * room as f64 >= 8.0)
        .unwrap_or(seconds);
    let mut line = String::new();
    for mark in 0.. {
        let at = step * f64::from(mark);
        let cell = (at / seconds.max(0.001) * room as f64).round() as usize;
        let text = if step < 1.0 { format!("{at:.1}") } else { format!("{at:.0}") };
        if cell + text.len() > room || mark > 100 {
            break;
        }
        line.push_str(&" ".repeat(cell.saturating_sub(line.len())));
        line.push_str(&text);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let timing = |step: &str, began, took| Timing { step: step.into(), began, took };
        let timings = [
            timing("sample", 0.0, 0.1),
            timing("cluster", 0.0, 18.6),
            timing("branch", 0.1, 0.1),
            timing("argocd-config", 18.6, 2.7),
            timing("git-server", 21.3, 4.5),
            timing("publish", 25.8, 0.3),
            timing("argocd", 21.3, 6.3),
            timing("argocd-ui", 37.7, 3.0),
            timing("applications", 27.6, 10.1),
        ];
        report("alice".parse().unwrap(), &timings)
    }

    #[test]
    fn bars_show_what_ran_beside_what() {
        insta::assert_snapshot!(anstream::adapter::strip_str(&draw(&sample(), 80, true)).to_string());
    }

    #[test]
    fn colours_tell_what_counts() {
        insta::assert_snapshot!(draw(&sample(), 80, false));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_none_is_lost() {
        for width in 1..200 {
            let text = anstream::adapter::strip_str(&draw(&sample(), width, true)).to_string();
            let bars: Vec<&str> = text.lines().skip(2).take(9).collect();
            assert_eq!(bars.len(), 9);
            assert!(width < 34 || bars.iter().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
    }

    #[test]
    fn the_critical_path_leads_from_the_start_to_the_end() {
        let critical: Vec<String> = sample().steps.into_iter().filter(|row| row.critical).map(|row| row.id).collect();
        assert_eq!(critical, ["cluster", "argocd-config", "argocd", "applications", "argocd-ui"]);
    }
}
