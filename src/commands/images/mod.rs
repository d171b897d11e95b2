//! `k8tre images`: what an environment needs from elsewhere, and its way to a machine without a network.

mod list;
mod load;
mod save;

use crate::cli::Images;
use crate::commands::App;
use crate::error::{Error, Result};

pub use load::{load, open};

pub async fn run(app: &App, command: &Images) -> Result<u8> {
    match command {
        Images::List(args) => list::run(app, args).await,
        Images::Save(args) => save::run(app, args).await,
        Images::Load { file } => load::run(app, file).await,
    }
}

/// The work, unless the user ends it before.
async fn unless_cancelled<T>(app: &App, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        () = app.cancel.cancelled() => Err(Error::interrupted()),
    }
}

/// Bytes, as people say it.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}
