//! The environment's own kubeconfig for a cluster that the user's kubeconfig has: this one context, and nothing of the
//! others.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Error, Result, ResultExt};

/// One context of a kubeconfig as a file of its own, under another name. What it says of cluster and user stays as it is,
/// credential plugins too; relative paths are meant from where the user's file is.
pub fn isolated(file: &Path, context: &str, called: &str) -> Result<String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the kubeconfig {shown}"))?;
    let budget = serde_saphyr::budget! { max_depth: 64, max_nodes: 200_000, max_aliases: 1_000 };
    let options = serde_saphyr::options! { budget: budget };
    let config: Value = serde_saphyr::from_str_with_options(&text, options)
        .with_context(|| format!("the kubeconfig {shown} is not valid YAML"))?;
    let entry = |list: &str, name: &Value, key: &str| {
        let found = config[list].as_array().into_iter().flatten().find(|entry| entry["name"] == *name);
        found.map(|entry| entry[key].clone()).ok_or_else(|| {
            Error::usage(format!("the kubeconfig {shown} has no {key} {}", name.as_str().unwrap_or_default()))
                .hint(format!("kubectl config view --context {context} --minify"))
        })
    };
    let mut own = entry("contexts", &json!(context), "context")?;
    let mut cluster = entry("clusters", &own["cluster"], "cluster")?;
    let mut user = entry("users", &own["user"], "user")?;
    let folder = std::path::absolute(file)?.parent().map(Path::to_owned).unwrap_or_default();
    anchor(&mut cluster, "certificate-authority", &folder);
    for key in ["client-certificate", "client-key", "tokenFile"] {
        anchor(&mut user, key, &folder);
    }
    // A command without a slash is looked for on PATH.
    if let Some(exec) =
        user.get_mut("exec").filter(|exec| exec["command"].as_str().is_some_and(|word| word.contains('/')))
    {
        anchor(exec, "command", &folder);
    }
    (own["cluster"], own["user"]) = (json!(called), json!(called));
    // JSON is YAML, and nothing in it can be misread.
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": called, "preferences": {},
        "clusters": [{"name": called, "cluster": cluster}],
        "contexts": [{"name": called, "context": own}],
        "users": [{"name": called, "user": user}],
    })
    .to_string())
}

fn anchor(object: &mut Value, key: &str, folder: &Path) {
    if let Some(path) = object.get_mut(key).filter(|path| path.as_str().is_some_and(|path| !path.is_empty())) {
        *path = json!(folder.join(path.as_str().unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_context_is_taken_and_no_secret_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: prod\n\
            clusters:\n- name: lab\n  cluster: {server: 'https://lab:6443', certificate-authority: ca.crt}\n\
            - name: prod\n  cluster: {server: 'https://prod:6443'}\n\
            contexts:\n- name: lab\n  context: {cluster: lab, user: me, namespace: mine}\n\
            - name: prod\n  context: {cluster: prod, user: root}\n\
            users:\n- name: me\n  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, args: [a], interactiveMode: Never}\n\
            - name: root\n  user: {token: s3cr3t}\n";
        std::fs::write(&file, text).unwrap();
        let made = isolated(&file, "lab", "k8tre-alice").unwrap();
        assert!(!made.contains("s3cr3t") && !made.contains("prod"), "{made}");
        let config: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(config["current-context"], "k8tre-alice");
        assert_eq!(config["contexts"][0]["context"]["namespace"], "mine");
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority"], json!(folder.path().join("ca.crt")));
        assert_eq!(config["users"][0]["user"]["exec"]["args"], json!(["a"]));
        assert_eq!(config["users"][0]["user"]["exec"]["command"], json!(folder.path().join("./bin/login")));
        let error = isolated(&file, "gone", "k8tre-alice").unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
    }
}
