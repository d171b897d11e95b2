//! Parameters from the repository's folders and files, and the `values` that generators add to their own.

use std::collections::BTreeMap;

use gotmpl::Value;

use super::{Event, Run, Stop};
use crate::gitops::appset::{Generator, Git, Problem};
use crate::gitops::params::{self, Map};
use crate::gitops::yaml::{self, token};

impl Run<'_> {
    pub(super) fn git(&self, git: &Git, generator: &Generator) -> Result<Vec<Map>, Stop> {
        if !self.world.is_this_repository(&git.repo_url) {
            let reason = format!("it reads another repository ({}), which is not at hand", git.repo_url);
            return Err(Stop::Unpredictable(reason));
        }
        if !git.directories.is_empty() {
            let folders = self.world.folders(&git.directories);
            if folders.is_empty() {
                self.event(|| Event::NoFolder(git.directories.clone()));
            } else if self.outer().0 {
                self.event(|| Event::Folders(folders.iter().map(|folder| (*folder).to_owned()).collect()));
            }
            return folders
                .into_iter()
                .map(|folder| {
                    let mut params = self.path_params(folder, None, git.prefix.as_deref());
                    self.append_values(&mut params, &git.values, generator, "git")?;
                    Ok(params)
                })
                .collect();
        }
        if git.files.is_empty() {
            return Err(Problem::new(&generator.pointer, "the git generator has neither directories nor files").into());
        }
        let files = self.world.files(&git.files);
        if files.is_empty() {
            self.event(|| Event::NoFile(git.files.clone()));
        }
        let mut found = Vec::new();
        for file in files {
            for object in self.file_objects(file, generator)? {
                let mut params = if self.engine.is_go() { object } else { flat_texts(&object) };
                params.extend(self.path_params(folder_of(file), Some(file), git.prefix.as_deref()));
                self.append_values(&mut params, &git.values, generator, "git")?;
                found.push(params);
            }
        }
        Ok(found)
    }

    fn file_objects(&self, file: &str, generator: &Generator) -> Result<Vec<Map>, Problem> {
        let problem = |message: String| Problem::new(&format!("{}/git/files", generator.pointer), message);
        let content = self.world.tree.read(file).map_err(|error| problem(error.to_string()))?;
        let data = yaml::data(file, &content).map_err(|error| problem(error.to_string()))?;
        let objects = match params::value(&data) {
            Value::Nil => return Ok(vec![Map::new()]),
            Value::List(objects) => objects.to_vec(),
            object => vec![object],
        };
        objects
            .into_iter()
            .map(|object| match object {
                Value::Map(fields) => Ok((*fields).clone()),
                Value::Nil => Ok(Map::new()),
                _ => Err(problem(format!("{file} holds neither a map nor a list of maps"))),
            })
            .collect()
    }

    fn path_params(&self, folder: &str, file: Option<&str>, prefix: Option<&str>) -> Map {
        let base = folder.rsplit('/').next().unwrap_or(folder);
        let filename = file.map(|file| file.rsplit('/').next().unwrap_or(file));
        if self.engine.is_go() {
            let segments: Vec<Value> = folder.split('/').map(Value::from).collect();
            let mut path = Map::from([
                ("path".into(), folder.into()),
                ("basename".into(), base.into()),
                ("basenameNormalized".into(), params::normalized(base).into()),
                ("segments".into(), segments.into()),
            ]);
            if let Some(name) = filename {
                path.insert("filename".into(), name.into());
                path.insert("filenameNormalized".into(), params::normalized(name).into());
            }
            let params = Map::from([("path".into(), path.into())]);
            return match prefix {
                Some(prefix) => Map::from([(prefix.into(), params.into())]),
                None => params,
            };
        }
        let name = prefix.map_or_else(|| "path".to_owned(), |prefix| format!("{prefix}.path"));
        let mut params = Map::from([
            (name.as_str().into(), folder.into()),
            (format!("{name}.basename").into(), base.into()),
            (format!("{name}.basenameNormalized").into(), params::normalized(base).into()),
        ]);
        if let Some(file) = filename {
            params.insert(format!("{name}.filename").into(), file.into());
            params.insert(format!("{name}.filenameNormalized").into(), params::normalized(file).into());
        }
        for (index, segment) in folder.split('/').enumerate().filter(|(_, segment)| !segment.is_empty()) {
            params.insert(format!("{name}[{index}]").into(), segment.into());
        }
        params
    }

    pub(super) fn append_values(
        &self,
        params: &mut Map,
        values: &BTreeMap<String, String>,
        generator: &Generator,
        kind: &str,
    ) -> Result<(), Stop> {
        if values.is_empty() {
            return Ok(());
        }
        let parameters = Value::from(params.clone());
        let mut rendered = Map::new();
        for (key, template) in values {
            let text = self.engine.render(template, &parameters).map_err(|message| {
                let pointer = format!("{}/{kind}/values/{}", generator.pointer, token(key));
                Problem::new(&pointer, format!("cannot render {template}: {message}"))
            })?;
            rendered.insert(key.as_str().into(), text.into());
        }
        match self.engine.is_go() {
            true => drop(params.insert("values".into(), rendered.into())),
            false => params.extend(rendered.into_iter().map(|(key, text)| (format!("values.{key}").into(), text))),
        }
        Ok(())
    }
}

fn folder_of(file: &str) -> &str {
    file.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

fn flat_texts(object: &Map) -> Map {
    params::flattened(object).into_iter().map(|(key, text)| (key.into(), text.into())).collect()
}
