//! Settings written to a file that a person may have written, too: what is in it stays, comments and order included.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::FileSettings;
use crate::error::{Error, Result, ResultExt};
use crate::ports::dirs;

/// One key of the file, such as `argocd.shared`, and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub key: &'static str,
    pub value: Setting,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    Text(String),
    List(Vec<String>),
}

/// Writes the file as a whole or not at all.
pub fn write(path: &Path, sets: &[Set]) -> Result<()> {
    let there = fs::metadata(path).map(|data| data.permissions().mode() & 0o777);
    let text = match &there {
        Ok(_) => fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        Err(_) => String::new(),
    };
    let text = changed(&text, sets).with_context(|| format!("cannot change {}", path.display()))?;
    dirs::write_whole(path, text.as_bytes(), there.unwrap_or(0o644))
}

fn changed(text: &str, sets: &[Set]) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    for set in sets {
        let (tables, key) = set.key.rsplit_once('.').map_or((None, set.key), |(table, key)| (Some(table), key));
        let table = match tables {
            None => document.as_table_mut(),
            Some(name) => {
                let item = document.entry(name).or_insert_with(|| Item::Table(Table::new()));
                item.as_table_mut().ok_or_else(|| Error::usage(format!("`{name}` is no table of its own there")))?
            }
        };
        let value = match &set.value {
            Setting::Text(text) => Value::from(text.as_str()),
            Setting::List(all) => Value::from(Array::from_iter(all.iter().map(String::as_str))),
        };
        match table.get_mut(key).and_then(Item::as_value_mut) {
            // What is written beside it stays there.
            Some(old) => {
                let decor = old.decor().clone();
                *old = value;
                *old.decor_mut() = decor;
            }
            None => {
                table.insert(key, Item::Value(value));
            }
        }
    }
    let text = document.to_string();
    // Nothing is written that could not be read again.
    toml::from_str::<FileSettings>(&text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &'static str, value: &str) -> Set {
        Set { key, value: Setting::Text(value.into()) }
    }

    #[test]
    fn what_a_person_wrote_stays_where_it_is() {
        let before = "# ours\nbase = \"main\"   # not master\ndomain = \"old\" # see the wiki\n\n[argocd]\nversion = \"v3.6.1\"\n";
        let skip = Set { key: "skip", value: Setting::List(vec!["hub".into(), "db".into()]) };
        let after = changed(before, &[text("domain", "new.example.org"), skip, text("argocd.shared", "team")]).unwrap();
        let expected = "# ours\nbase = \"main\"   # not master\ndomain = \"new.example.org\" # see the wiki\nskip = [\"hub\", \"db\"]\n\n\
                        [argocd]\nversion = \"v3.6.1\"\nshared = \"team\"\n";
        assert_eq!(after, expected);
        assert_eq!(changed("", &[text("provider", "kind")]).unwrap(), "provider = \"kind\"\n");
        assert_eq!(changed("", &[text("argocd.shared", "team")]).unwrap(), "[argocd]\nshared = \"team\"\n");
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k8tre.toml");
        assert!(write(&path, &[text("provider", "nonsense")]).is_err() && !path.exists());
        fs::write(&path, "base = [").unwrap();
        assert!(write(&path, &[text("domain", "x")]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "base = [");
    }
}
