//! The first edit: the person changes a file, and sees it live.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::{NameArgs, SyncArgs};
use crate::commands::{App, select, sync};
use crate::error::Result;
use crate::spec::{Source, Spec};
use crate::ui::ask::Asking;

/// Of the sample, what shows most.
const SAMPLE_FILE: &str = "apps/portal/base/index.html";

/// Whether an edit went live.
pub async fn first(app: &App, asking: &Asking<'_>, spec: &Spec) -> Result<bool> {
    let (name, ui) = (&spec.name, &app.ui);
    let file = file_to_edit(spec);
    let shown = file.as_deref().unwrap_or(&spec.repo).display();
    ui.say("");
    if matches!(spec.source, Source::Remote { .. }) {
        ui.say("Your first edit: Argo CD reads your branch from the remote, so commit there, then bring it in:");
        ui.say(&format!("  cd {} && git switch {}", spec.repo.display(), spec.name.branch()));
        ui.say(&format!("  edit {shown}, git commit --all, k8tre dev up {name}"));
        return Ok(false);
    }
    if !asking.is_answered() {
        ui.say(&format!("Your first edit: change {shown}, then: k8tre dev sync {name}"));
        return Ok(false);
    }
    ui.say("Your first edit. In your editor, change something in this file and save it; no commit is needed:");
    ui.say(&format!("  {shown}"));
    loop {
        let any = |_: &str| Ok(());
        let answer = asking.text("Enter when it is saved, or `later`", "saved", any)?;
        if answer.starts_with('l') {
            ui.say(&format!("later, then: k8tre dev sync {name}"));
            return Ok(false);
        }
        let before = select::journal_of(app, name)?.facts.synced;
        let args = SyncArgs {
            name: NameArgs { environment: Some(name.clone()), name: None },
            watch: false,
            reset: false,
            timeout: Duration::from_secs(120),
            no_wait: false,
            max_file_size: None,
        };
        let code = sync::run(app, &args).await?;
        let changed = select::journal_of(app, name)?.facts.synced != before;
        match (code, changed) {
            (0, true) => {
                if spec.sample {
                    ui.say(&format!("look at it: k8tre dev open portal --name {name}"));
                }
                return Ok(true);
            }
            (0, false) => ui.say("no file differs from what is deployed; is it saved?"),
            _ => ui.say("it is not live; mend the file, and save it again"),
        }
    }
}

/// A file whose change can be seen, and breaks nothing: of a ConfigMap, if there is one.
fn file_to_edit(spec: &Spec) -> Option<PathBuf> {
    let page = spec.repo.join(SAMPLE_FILE);
    if page.exists() {
        return Some(page);
    }
    let folders = |folder: &Path| {
        let mut inner: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        inner.sort();
        inner
    };
    let apps = folders(&spec.repo.join("apps"))
        .into_iter()
        .filter(|app| app.file_name().and_then(|name| name.to_str()).is_some_and(|name| !spec.skip.contains(name)));
    let files = apps.flat_map(|app| folders(&app.join("base")));
    let mut yaml = files.filter(|file| file.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    yaml.find(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("kind: ConfigMap")))
}
