//! The answers, kept in a settings file if the person wants that: at once, as a whole, when all is agreed to.

use super::answers::Answers;
use crate::cli::{OnboardArgs, SettingsFile};
use crate::commands::App;
use crate::error::Result;
use crate::settings::{self, write};
use crate::ui::ask::Asking;

pub fn keep(app: &App, asking: &Asking<'_>, args: &OnboardArgs, answers: &Answers) -> Result<()> {
    // Defaults need no file.
    if answers.sets.is_empty() {
        return Ok(());
    }
    let user = app.dirs.config.join("config.toml");
    let repository = answers.repo.as_ref().map(|repo| repo.join(settings::FILE));
    let mut choices = vec![
        (SettingsFile::None, "nowhere; this environment remembers them".to_owned()),
        (SettingsFile::User, format!("in {}, for your environments", user.display())),
    ];
    if let Some(path) = &repository {
        choices.push((SettingsFile::Repository, format!("in {}, for all who work on it", path.display())));
    }
    let chosen = match args.settings {
        Some(chosen) => chosen,
        None => {
            let words: Vec<String> = choices.iter().map(|(_, words)| words.clone()).collect();
            choices[asking.one("Keep these answers as defaults?", &words, 0)?].0
        }
    };
    let path = match (chosen, repository) {
        (SettingsFile::None, _) => return Ok(()),
        (SettingsFile::Repository, Some(path)) => path,
        // The sample has no file of its own.
        (SettingsFile::User | SettingsFile::Repository, _) => user,
    };
    write::write(&path, &answers.sets)?;
    let keys: Vec<&str> = answers.sets.iter().map(|set| set.key).collect();
    app.ui.say(&format!("kept in {}: {}", path.display(), keys.join(", ")));
    Ok(())
}
