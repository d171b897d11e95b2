//! A config management plugin as a sidecar of the repo-server: kustomize, then the variables that the
//! Application gives, filled in.
//!
//! K8TRE's guide pipes kustomize into sed, so that a failed build counts as success with nothing in
//! it; and it fills in two variables of four. This one fails when kustomize fails, and fills in all.

use serde_json::{Value, json};

use crate::argocd::manifest::Settings;
use crate::gitops::preset::Plugin;

const CONFIG: &str = "cmp-plugin";

/// Adds the plugin to the settings. Its container runs the Argo CD image, which holds kustomize.
pub fn add(settings: &mut Settings, plugin: &Plugin, build_options: &str) {
    let definition = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ConfigManagementPlugin",
        "metadata": {"name": plugin.name},
        "spec": {"version": plugin.version, "generate": {"command": ["sh", "-c"], "args": [script(build_options)]}}
    });
    settings.extra.push(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CONFIG, "labels": {"app.kubernetes.io/part-of": "argocd"}},
        // JSON is YAML, and nothing in it can be misread.
        "data": {"plugin.yaml": definition.to_string()}
    }));
    settings.sidecars.push(json!({
        "name": "cmp-kustomize-envsubst",
        "command": ["/var/run/argocd/argocd-cmp-server"],
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 999, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}
        },
        "volumeMounts": [
            {"name": "var-files", "mountPath": "/var/run/argocd"},
            {"name": "plugins", "mountPath": "/home/argocd/cmp-server/plugins"},
            {"name": CONFIG, "mountPath": "/home/argocd/cmp-server/config/plugin.yaml", "subPath": "plugin.yaml"},
            {"name": "cmp-tmp", "mountPath": "/tmp"}
        ]
    }));
    let volumes: [Value; 2] =
        [json!({"name": CONFIG, "configMap": {"name": CONFIG}}), json!({"name": "cmp-tmp", "emptyDir": {}})];
    settings.volumes.extend(volumes);
}

/// Argo CD hands each `env` entry NAME of the Application on as ARGOCD_ENV_NAME.
fn script(build_options: &str) -> String {
    format!(
        r#"set -eu
out=$(kustomize build {build_options} .)
for name in $(env | sed -n 's/^ARGOCD_ENV_\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
  value=$(printenv "ARGOCD_ENV_$name" | sed 's/[&|\\]/\\&/g')
  out=$(printf '%s\n' "$out" | sed "s|\${{$name}}|$value|g")
done
printf '%s\n' "$out"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::process::{Output, Program};

    async fn run(kustomize: &str, variables: &[(&str, &str)]) -> Output {
        let tools = tempfile::tempdir().unwrap();
        let path = tools.path().join("kustomize");
        std::fs::write(&path, format!("#!/bin/sh\n{kustomize}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", tools.path().display());
        let program = Program::new("sh").args(["-c", &script("--enable-helm")]).env("PATH", path);
        variables.iter().fold(program, |program, (name, value)| program.env(name, value)).output().await.unwrap()
    }

    #[tokio::test]
    async fn every_variable_that_the_application_gives_is_filled_in() {
        let variables = [("ARGOCD_ENV_DOMAIN", "a.b&c|d"), ("ARGOCD_ENV_REGION", "eu")];
        let output = run("echo 'host: portal.${DOMAIN} in ${REGION}, not ${OTHER} or $DOMAIN'", &variables).await;
        assert_eq!(output.text(), "host: portal.a.b&c|d in eu, not ${OTHER} or $DOMAIN");
    }

    #[tokio::test]
    async fn a_failed_build_fails_the_plugin() {
        let output = run("echo broken >&2; exit 1", &[]).await;
        assert!(!output.success());
        assert_eq!((output.text().as_str(), output.errors().as_str()), ("", "broken"));
    }
}
