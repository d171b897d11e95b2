//! Objects that cannot be made from the repository's files: kustomize, Helm, a plugin, broken YAML.

use super::view::View;
use super::words::{group, innermost, pattern, quoted};
use super::{Cause, Family};

pub const FAMILY: Family = Family {
    codes: &["plugin-missing", "plugin-failed", "kustomize-failed", "helm-failed", "yaml-invalid", "render-failed"],
    explain,
};

fn explain(view: &View) -> Option<Cause> {
    let message = view
        .comparison_errors()
        .find(|message| pattern!(r"generate manifest|(?i)manifest generation|CMP processing").is_match(message))?;
    let message = message.replace("<path to cached source>/", "");
    // A plugin works on a copy of the repository.
    let message = pattern!(r"/tmp/_cmp_server/[0-9a-f-]{36}/").replace_all(&message, "");
    let source = &view.app["spec"]["source"];
    let path = source["path"].as_str().unwrap_or(".");
    let build = format!("kustomize build {}", quoted(path));

    if pattern!(r"CMP processing failed|plugin sidecar failed|cmp-server").is_match(&message) {
        let named =
            group(pattern!(r#"plugin with name "([^"]+)""#), &message).or_else(|| source["plugin"]["name"].as_str());
        let plugin = named.map(|name| format!(" \"{name}\"")).unwrap_or_default();
        if message.contains("could not find cmp-server plugin") || message.contains("could not find plugin") {
            return Some(
                Cause::new("plugin-missing")
                    .because(format!("no plugin{plugin} in Argo CD's repo-server"))
                    .hint("kubectl -n argocd get deploy argocd-repo-server -o jsonpath='{.spec.template.spec.containers[*].name}'"),
            );
        }
        let cause = Cause::new("plugin-failed").because(format!("plugin{plugin} failed in {path}"));
        let place = file_in(&message).map(|file| format!("{}: ", place(path, file))).unwrap_or_default();
        return Some(cause.because(format!("{place}{}", reason(&message))).hint(build));
    }
    let said = group(pattern!(r#"(?s)Failed to unmarshal "([^"]+)""#), &message);
    if let Some(file) = said {
        let file = format!("{path}/{file}");
        let cause = Cause::new("yaml-invalid").because(format!("{file} is no valid YAML")).because(reason(&message));
        return Some(cause.hint(format!("kubectl apply --dry-run=client -f {}", quoted(&file))));
    }
    let (code, tool, hint) = match &message {
        m if m.contains("`kustomize ") => ("kustomize-failed", "kustomize", build),
        m if m.contains("`helm ") => ("helm-failed", "Helm", format!("helm template {}", quoted(path))),
        _ => (
            "render-failed",
            "Argo CD",
            format!("kubectl -n argocd logs deploy/argocd-repo-server --tail 50 | grep {}", view.name()),
        ),
    };
    let place = match file_in(&message) {
        // Helm names the chart, which is not the folder that it lies in.
        Some(file) if code == "helm-failed" => {
            format!("{path}/{}", file.split_once('/').map_or(file, |(_, rest)| rest))
        }
        // kustomize names a file as the kustomization does that it was reading, and tells that one's folder before.
        Some(file) => place(folder_in(&message).unwrap_or(path), file),
        None => path.to_owned(),
    };
    Some(
        Cause::new(code)
            .because(format!("{tool} cannot build {path}"))
            .because(format!("{place}: {}", reason(&message)))
            .hint(hint),
    )
}

/// A file as it is called in the repository.
fn place(path: &str, file: &str) -> String {
    match file.find(path) {
        Some(start) => file[start..].to_owned(),
        None if file.contains('/') => file.to_owned(),
        None => format!("{path}/{file}"),
    }
}

/// The folder of the kustomization that was read last, where that is not the Application's own.
fn folder_in(message: &str) -> Option<&str> {
    let folders = pattern!(r"recursed accumulation of path '([^']+)'").captures_iter(message);
    folders.last().and_then(|found| found.get(1)).map(|found| found.as_str())
}

/// The innermost file that the message blames.
fn file_in(message: &str) -> Option<&str> {
    group(pattern!(r"in File: (\S+)"), message)
        .or_else(|| group(pattern!(r"(?:error at \(|YAML parse error on |parse error at \()([^)\s]+?)[):]"), message))
        .or_else(|| {
            pattern!(r"(?:lstat|stat|open) ([^\s:']+)[:' ]")
                .captures_iter(message)
                .last()
                .and_then(|found| found.get(1))
                .map(|found| found.as_str())
        })
        .or_else(|| {
            pattern!(r"accumulating resources from '([^']+)'")
                .captures_iter(message)
                .last()
                .and_then(|found| found.get(1))
                .map(|found| found.as_str())
        })
}

/// What the program said last, without the files that were told already and the layers around it.
fn reason(message: &str) -> String {
    let last = message
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty() && !line.starts_with("Use --debug"))
        .unwrap_or_default();
    if let Some(yaml) = group(pattern!(r"(?:^|\s)(yaml: (?:line \d+: )?.+?)(?: in File: \S+)?$"), last) {
        return yaml.to_owned();
    }
    if last.contains("no such file or directory") {
        return "no such file or directory".to_owned();
    }
    if let Some(said) = group(pattern!(r"error at \([^)]+\): (.+)$"), last) {
        return said.to_owned();
    }
    match last.rsplit_once("Error: ") {
        Some((_, said)) => said.to_owned(),
        None => innermost(last).to_owned(),
    }
}
