//! `k8tre dev status --watch`: a live table in a terminal; elsewhere a new block, or JSON document,
//! at each change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use owo_colors::Style;

use super::gather::{Report, look};
use super::show;
use crate::cli::StatusArgs;
use crate::commands::{App, select};
use crate::error::{Error, Kind, Result};
use crate::names::EnvName;
use crate::text::one_line;
use crate::ui::screen::{Input, Screen};

/// From one look to the next; longer where a look takes longer than half of it.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a change stays highlighted.
const NEW: Duration = Duration::from_secs(5);

pub async fn run(app: &App, name: &EnvName, args: &StatusArgs) -> Result<u8> {
    select::journal_of(app, name)?;
    let healthy = match app.ui.is_screen() && !app.ui.is_json() {
        true => live(app, name, args.require_synced).await?,
        false => blocks(app, name, args.require_synced).await?,
    };
    Ok(if healthy { 0 } else { Kind::Unhealthy.exit_code() })
}

/// A look, and how long to wait before the next: the cluster and this machine are never busy with it
/// for more than half of the time.
async fn paced(app: &App, name: &EnvName, synced: bool, wait: Duration) -> Result<(Report, Duration)> {
    tokio::time::sleep(wait).await;
    let began = Instant::now();
    // What is recorded changes with each push.
    let report = look(app, &select::journal_of(app, name)?, synced).await?;
    let took = began.elapsed();
    Ok((report, PERIOD.saturating_sub(took).max(took)))
}

/// Prints what has changed until Ctrl-C; returns whether all was healthy at the last look.
async fn blocks(app: &App, name: &EnvName, synced: bool) -> Result<bool> {
    let (mut before, mut healthy, mut wait) = (String::new(), false, Duration::ZERO);
    loop {
        let report = match paced(app, name, synced, wait).await {
            Ok((report, next)) => {
                wait = next;
                report
            }
            Err(error) if error.kind() == Kind::Interrupted => return Ok(healthy),
            Err(error) => return Err(error),
        };
        healthy = report.healthy;
        let now = serde_json::to_string(&report)?;
        if now != before {
            match app.ui.is_json() {
                true => app.ui.data_line(&now),
                false => {
                    let separator = if before.is_empty() { "" } else { "\n" };
                    app.ui.data(&format!("{separator}{}\n{}", clock(), show::text(&report, app.ui.is_unicode())));
                }
            }
            before = now;
        }
        tokio::select! {
            () = app.cancel.cancelled() => return Ok(healthy),
            () = tokio::time::sleep(wait) => wait = Duration::ZERO,
        }
    }
}

/// The live table; returns as `blocks` does.
async fn live(app: &App, name: &EnvName, synced: bool) -> Result<bool> {
    let mut screen = Screen::open()?;
    let mut table =
        Table { report: None, changed: BTreeMap::new(), offset: 0, at: clock(), unicode: app.ui.is_unicode() };
    screen.draw(&[(format!("looking at {name} …"), Style::new())])?;
    let mut looking = Box::pin(paced(app, name, synced, Duration::ZERO));
    // Highlights end also when nothing else happens.
    let mut refresh = tokio::time::interval(PERIOD);
    loop {
        tokio::select! {
            () = app.cancel.cancelled() => return Ok(table.healthy()),
            input = screen.next() => match input {
                Input::Quit => return Ok(table.healthy()),
                Input::Scroll(lines) => table.offset = table.offset.saturating_add_signed(lines),
                Input::Resized => {}
            },
            seen = &mut looking => match seen {
                Ok((report, wait)) => {
                    table.see(report, clock());
                    looking = Box::pin(paced(app, name, synced, wait));
                }
                Err(error) if error.kind() == Kind::Interrupted => return Ok(table.healthy()),
                Err(error) => return Err(gone(error)),
            },
            _ = refresh.tick() => {}
        }
        if table.report.is_some() {
            let (width, height) = Screen::size();
            let frame = table.frame(width, height);
            screen.draw(&frame)?;
        }
    }
}

fn gone(error: Error) -> Error {
    match error.kind() {
        Kind::NotFound => error.context("there is nothing to watch any more"),
        _ => error,
    }
}

fn clock() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

struct Table {
    report: Option<Report>,
    /// When a line last changed, by the Application's name; the environment's own lines by their text.
    changed: BTreeMap<String, Instant>,
    offset: usize,
    at: String,
    unicode: bool,
}

impl Table {
    fn healthy(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.healthy)
    }

    fn see(&mut self, report: Report, at: String) {
        let now = Instant::now();
        self.changed.retain(|_, at| at.elapsed() < NEW);
        if let Some(before) = &self.report {
            let known: BTreeMap<&str, String> =
                before.applications.iter().map(|app| (app.name.as_str(), format!("{app:?}"))).collect();
            for app in &report.applications {
                if known.get(app.name.as_str()) != Some(&format!("{app:?}")) {
                    self.changed.insert(app.name.clone(), now);
                }
            }
            let heads = show::head(before, self.unicode);
            for line in show::head(&report, self.unicode).into_iter().skip(1).filter(|line| !heads.contains(line)) {
                self.changed.insert(line, now);
            }
        }
        self.at = at;
        self.report = Some(report);
    }

    /// The screen, line by line; scrolls no further than to the last Application.
    fn frame(&mut self, width: usize, height: usize) -> Vec<(String, Style)> {
        let Some(report) = &self.report else { return Vec::new() };
        let fit = |text: &str| -> String {
            let text = anstream::adapter::strip_str(text).to_string();
            let text = text.trim_end();
            match text.chars().count() > width {
                true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
                false => text.to_owned(),
            }
        };
        let (plain, new) = (Style::new(), Style::new().black().on_yellow());
        let is_new = |key: &str| self.changed.get(key).is_some_and(|at| at.elapsed() < NEW);
        let mut frame: Vec<(String, Style)> = Vec::new();
        for (at, line) in show::head(report, self.unicode).iter().enumerate() {
            let style = match at {
                0 if report.healthy => plain.green().bold(),
                0 => plain.red().bold(),
                _ if is_new(line) => new,
                _ => plain,
            };
            frame.push((fit(line), style));
        }
        // A terminal of few rows shows Applications rather than the rest.
        frame.truncate(height.saturating_sub(5).max(1));
        frame.push((String::new(), plain));
        let mut table = show::applications(report).into_iter();
        frame.extend(
            table.next().filter(|_| !report.applications.is_empty()).map(|header| (fit(&header), plain.dimmed())),
        );
        let room = height.saturating_sub(frame.len() + 2).max(1);
        let all = report.applications.len();
        self.offset = self.offset.min(all.saturating_sub(room));
        for (line, app) in table.zip(&report.applications).skip(self.offset).take(room) {
            let style = match app.verdict.is_healthy() {
                _ if is_new(&app.name) => new,
                true => plain,
                false => plain.red(),
            };
            frame.push((fit(&line), style));
        }
        let healthy = report.applications.iter().filter(|app| app.verdict.is_healthy()).count();
        let scroll = if all > room {
            format!("; {} to {} shown, arrows scroll", self.offset + 1, (self.offset + room).min(all))
        } else {
            String::new()
        };
        frame.push((String::new(), plain));
        let footer = format!("{}; q quits; {healthy} of {all} Applications healthy{scroll}", self.at);
        frame.push((one_line(&footer, width), plain.dimmed()));
        frame.truncate(height);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argocd::application::Verdict;
    use crate::commands::status::gather::{ApplicationReport, ArgoCdReport, BranchReport, ClusterReport};

    const NOON: &str = "12:00:00";

    fn report(health: &str, applications: usize) -> Report {
        let application = |at: usize| ApplicationReport {
            name: format!("app-{at}"),
            set: None,
            sync: Some("Synced".into()),
            health: Some(if at == 1 { health.into() } else { "Healthy".into() }),
            revision: Some("ae389a1b00".into()),
            verdict: if at == 1 && health != "Healthy" { Verdict::Failing(health.into()) } else { Verdict::Healthy },
            held: None,
            cause: None,
            why: if at == 1 && health != "Healthy" {
                "Pod web-1 ImagePullBackOff <- no such image".into()
            } else {
                String::new()
            },
        };
        Report {
            schema: 1,
            environment: "alice".parse().unwrap(),
            id: "1".into(),
            // Old enough that a slow test does not make it older.
            created: jiff::Timestamp::now() - jiff::SignedDuration::from_hours(73),
            expires: None,
            healthy: health == "Healthy",
            cluster: ClusterReport {
                provider: "kind",
                name: "k8tre-alice".into(),
                state: "running".into(),
                address: Some("https://127.0.0.1:1".into()),
                kubeconfig: "/k".into(),
            },
            argocd: ArgoCdReport { version: "v3.6.1".into(), placement: "co-located", shared: None },
            branch: BranchReport {
                name: "dev/alice".into(),
                tip: Some("ae389a1b".into()),
                published: Some("ae389a1b".into()),
                ..BranchReport::default()
            },
            applications: (0..applications).map(application).collect(),
            steps: Vec::new(),
            predicted: BTreeMap::new(),
        }
    }

    fn table(applications: usize) -> Table {
        let mut table = Table { report: None, changed: BTreeMap::new(), offset: 0, at: NOON.into(), unicode: true };
        table.see(report("Healthy", applications), NOON.into());
        table
    }

    fn text(frame: &[(String, Style)]) -> String {
        frame.iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_table_at_80_columns() {
        let mut table = table(3);
        table.see(report("Degraded", 3), NOON.into());
        insta::assert_snapshot!(text(&table.frame(80, 24)));
    }

    #[test]
    fn only_what_changed_is_highlighted() {
        let mut table = table(3);
        let highlighted = |table: &mut Table| {
            let frame = table.frame(80, 24);
            frame
                .into_iter()
                .filter(|(_, style)| *style == Style::new().black().on_yellow())
                .map(|(line, _)| line)
                .collect::<Vec<_>>()
        };
        assert!(highlighted(&mut table).is_empty());
        table.see(report("Degraded", 3), NOON.into());
        let lines = highlighted(&mut table);
        assert!(lines.len() == 1 && lines[0].starts_with("app-1"), "{lines:?}");
        table.changed.values_mut().for_each(|at| *at -= NEW);
        assert!(highlighted(&mut table).is_empty());
    }

    #[test]
    fn it_fits_every_terminal_and_scrolls_to_the_end_and_no_further() {
        let mut table = table(50);
        for (width, height) in [(20, 5), (40, 10), (80, 24), (200, 100)] {
            table.offset = usize::MAX;
            let frame = table.frame(width, height);
            assert!(
                frame.len() <= height && frame.iter().all(|(line, _)| line.chars().count() <= width),
                "{width}x{height}"
            );
            assert!(text(&frame).contains("app-49"), "{}", text(&frame));
        }
    }
}
