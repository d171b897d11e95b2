//! What the repository needs of Argo CD's own settings, held against what a shared one has: only its administrator can
//! change that. What cannot be seen is said, where something hangs on it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::argocd::side::ArgoCd;
use crate::error::Result;
use crate::gitops::predict::Prediction;
use crate::gitops::preset::Preset;
use crate::gitops::yaml;
use crate::ports::kube::Type;
use crate::spec::SharedArgoCd;
use crate::text::one_line;

const CONFIG: &str = "argocd-cm";
/// Where Argo CD's plugin server, a sidecar, reads which plugin it is.
const PLUGIN_FILE: &str = "/home/argocd/cmp-server/config/plugin.yaml";

/// What its administrator has to set; none if all that is needed is there.
pub async fn missing(
    argocd: &ArgoCd,
    shared: &SharedArgoCd,
    preset: Option<&Preset>,
    prediction: &Prediction,
) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let plain = prediction.applications.iter().any(|app| app.plugin.is_none());
    if let Some(preset) = preset.filter(|_| plain) {
        let wanted = &preset.build_options;
        // Who may not read it may still be right.
        match argocd.get(&Type::new("v1", "ConfigMap"), CONFIG).await {
            Ok(config) => missing.extend(lacking_options(&config.unwrap_or_default(), wanted).map(|lacking| {
                format!(
                    "the Argo CD in {} builds without {lacking}, which this repository needs; its administrator sets, in the ConfigMap {CONFIG}: kustomize.buildOptions: {wanted}",
                    shared.place()
                )
            })),
            Err(_) => missing.push(format!(
                "whether the Argo CD in {} builds with {wanted}, which this repository needs, cannot be seen: you may not read its ConfigMap {CONFIG}",
                shared.place()
            )),
        }
    }
    let wanted: BTreeSet<&str> = prediction.applications.iter().filter_map(|app| app.plugin.as_deref()).collect();
    if wanted.is_empty() {
        return Ok(missing);
    }
    let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-repo-server").await?;
    let servers = plugin_servers(&pods);
    let (mut there, mut unseen) = (BTreeSet::new(), false);
    for config in &servers {
        let config = match config {
            Some(name) => argocd.get(&Type::new("v1", "ConfigMap"), name).await.ok().flatten(),
            None => None,
        };
        match config.as_ref().and_then(plugin_name) {
            Some(name) => drop(there.insert(name)),
            None => unseen = true,
        }
    }
    for name in wanted.into_iter().filter(|name| !there.contains(*name)) {
        missing.push(match unseen {
            true => format!(
                "whether the Argo CD in {} has the plugin {name}, which this repository needs, cannot be seen from its repo-server's pod",
                shared.place()
            ),
            false => format!(
                "the Argo CD in {} has no plugin {name}, which this repository needs; its administrator adds it as a sidecar of the repo-server",
                shared.place()
            ),
        });
    }
    Ok(missing)
}

/// The build options that it lacks, if any.
fn lacking_options(config: &Value, wanted: &str) -> Option<String> {
    let words = |text: &str| text.replace('=', " ").split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let there = words(config["data"]["kustomize.buildOptions"].as_str().unwrap_or_default());
    let lacking: Vec<String> = words(wanted).into_iter().filter(|word| !there.contains(word)).collect();
    (!lacking.is_empty()).then(|| lacking.join(" "))
}

/// Each plugin server of the repo-server, with the ConfigMap that says which plugin it is, if one does.
fn plugin_servers(pods: &[Value]) -> BTreeSet<Option<String>> {
    let mut servers = BTreeSet::new();
    for pod in pods {
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            let words = ["command", "args"].into_iter().flat_map(|key| container[key].as_array()).flatten();
            let mut words = words.filter_map(Value::as_str);
            if !words.any(|word| word.ends_with("argocd-cmp-server")) {
                continue;
            }
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            let mount = mounts.into_iter().find(|mount| {
                let path = mount["mountPath"].as_str().unwrap_or_default();
                !path.is_empty() && (path == PLUGIN_FILE || PLUGIN_FILE.strip_prefix(path) == Some("/plugin.yaml"))
            });
            let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
            let volume = mount.and_then(|mount| volumes.find(|volume| volume["name"] == mount["name"]));
            servers.insert(volume.and_then(|volume| volume["configMap"]["name"].as_str().map(str::to_owned)));
        }
    }
    servers
}

/// The name by which Applications ask for the plugin of a ConfigMap.
fn plugin_name(config: &Value) -> Option<String> {
    let text = config["data"]["plugin.yaml"].as_str()?;
    let plugin = yaml::document("plugin.yaml", text.as_bytes()).ok()?.value;
    let name = plugin["metadata"]["name"].as_str()?;
    let version = plugin["spec"]["version"].as_str().filter(|version| !version.is_empty());
    Some(one_line(&version.map_or_else(|| name.to_owned(), |version| format!("{name}-{version}")), 100))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::argocd::manifest::Settings;
    use crate::argocd::plugin;
    use crate::gitops::preset::Plugin;

    #[test]
    fn options_that_are_not_set_are_named() {
        let config = |options: &str| json!({"data": {"kustomize.buildOptions": options}});
        let wanted = "--enable-helm --load-restrictor LoadRestrictionsNone";
        assert_eq!(lacking_options(&Value::Null, wanted).as_deref(), Some(wanted));
        assert_eq!(lacking_options(&config("--load-restrictor=LoadRestrictionsNone --enable-helm --x"), wanted), None);
        assert_eq!(
            lacking_options(&config("--load-restrictor LoadRestrictionsNone"), wanted).as_deref(),
            Some("--enable-helm")
        );
    }

    #[test]
    fn the_plugin_that_k8tre_itself_adds_is_found_again() {
        let mut settings = Settings::default();
        let plugin = Plugin { name: "kustomize-with-envsubst".into(), version: "v1.0".into() };
        plugin::add(&mut settings, &plugin, "");
        let pod = json!({"spec": {"containers": settings.sidecars, "volumes": settings.volumes}});
        let config = &settings.extra[0];
        let name = config["metadata"]["name"].as_str().map(str::to_owned);
        assert_eq!(plugin_servers(&[pod]), BTreeSet::from([name]));
        assert_eq!(plugin_name(config).as_deref(), Some("kustomize-with-envsubst-v1.0"));
    }

    #[test]
    fn a_plugin_that_is_part_of_its_image_is_there_but_cannot_be_named() {
        let sidecar = json!({"name": "cmp", "command": ["/var/run/argocd/argocd-cmp-server"]});
        let pod = json!({"spec": {"containers": [{"name": "argocd-repo-server", "args": ["/usr/local/bin/argocd-repo-server"]}, sidecar]}});
        assert_eq!(plugin_servers(&[pod]), BTreeSet::from([None]));
        assert!(plugin_servers(&[json!({"spec": {"containers": [{"name": "argocd-repo-server"}]}})]).is_empty());
    }
}
