//! `k8tre dev status`: what is there, what is wrong and why. Reads only, and answers also when
//! nothing else does.

pub mod gather;
pub mod show;
mod watch;

use crate::cli::StatusArgs;
use crate::commands::{App, select};
use crate::error::{Kind, Result};

pub async fn run(app: &App, args: &StatusArgs) -> Result<u8> {
    let name = select::existing_name(app, &args.name)?;
    if args.watch {
        return watch::run(app, &name, args).await;
    }
    let report = gather::look(app, &select::journal_of(app, &name)?, args.require_synced).await?;
    match app.ui.is_json() {
        true => app.ui.json(&report)?,
        false => {
            app.ui.data(&show::text(&report, app.ui.is_unicode()));
            show::advice(&report).iter().for_each(|line| app.ui.say(line));
        }
    }
    Ok(if report.healthy { 0 } else { Kind::Unhealthy.exit_code() })
}
