//! What an environment needs of the settings of an Argo CD that k8tre did not install, held against what that has. What
//! cannot be seen is said, where something hangs on it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::argocd::side::ArgoCd;
use crate::context::Context;
use crate::error::Result;
use crate::gitops::planned::Planned;
use crate::gitops::yaml;
use crate::ports::kube::Type;
use crate::text::one_line;
use crate::{overlay, sample};

/// Argo CD's own settings.
pub const CONFIG: &str = "argocd-cm";
const OPTIONS: &str = "kustomize.buildOptions";
/// Where Argo CD's plugin server, a sidecar, reads which plugin it is.
const PLUGIN_FILE: &str = "/home/argocd/cmp-server/config/plugin.yaml";
/// Rules of health for what asks for an address: kind, key, and the rule that waits for none.
const HEALTH: [(&str, &str); 2] = [
    ("Service", "resource.customizations.health.Service"),
    ("Ingress", "resource.customizations.health.networking.k8s.io_Ingress"),
];
const HEALTHY: &str = "return {status = \"Healthy\"}";

/// Something that the environment needs, and that Argo CD has not got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    Setting(Setting),
    /// A plugin of the repo-server.
    Plugin(String),
    /// What may not be seen, as a clause with "whether".
    Unseen(String),
}

/// A key of `argocd-cm` that has to be another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: &'static str,
    pub before: Option<String>,
    pub after: String,
    /// What is wrong without, said of "the Argo CD in …".
    why: String,
}

impl Need {
    /// What is wrong, with the place as it is called in messages.
    pub fn what(&self, place: &str) -> String {
        match self {
            Need::Setting(setting) => setting.why.replace("{}", &format!("the Argo CD in {place}")),
            Need::Plugin(name) => {
                format!("the Argo CD in {place} has no plugin {name}, which this repository needs")
            }
            Need::Unseen(clause) => clause.replace("{}", &format!("the Argo CD in {place}")),
        }
    }

    /// What its administrator can do, if anything.
    pub fn remedy(&self, context: &str, namespace: &str) -> String {
        match self {
            Need::Setting(setting) => setting.command(context, namespace),
            Need::Plugin(_) => "its administrator adds it as a sidecar of the repo-server".to_owned(),
            Need::Unseen(_) => String::new(),
        }
    }
}

impl Setting {
    fn command(&self, context: &str, namespace: &str) -> String {
        set(context, namespace, self.key, Some(&self.after))
    }

    /// Before and after.
    pub fn change(&self) -> String {
        let before = self.before.as_ref().map_or_else(|| "unset".to_owned(), |text| quoted(text));
        format!("{}: {before} -> {}", self.key, quoted(&self.after))
    }
}

/// A value as it is shown to people.
pub fn quoted(value: &str) -> String {
    format!("\"{}\"", one_line(value, 200))
}

/// The command that sets a key, or takes it away.
pub fn set(context: &str, namespace: &str, key: &str, value: Option<&str>) -> String {
    let patch = json!({"data": {key: value}}).to_string().replace('\'', "'\\''");
    format!("kubectl --context {context} -n {namespace} patch configmap {CONFIG} --type merge -p '{patch}'")
}

/// The settings, as Argo CD has them.
pub async fn config(argocd: &ArgoCd) -> Result<Value> {
    Ok(argocd.get(&config_type(), CONFIG).await?.unwrap_or_default())
}

pub fn config_type() -> Type {
    Type::new("v1", "ConfigMap")
}

/// All that is missing; nothing if all that is needed is there.
pub async fn missing(cx: &Context, argocd: &ArgoCd) -> Result<Vec<Need>> {
    let wanted = Wanted::of(cx).await?;
    let mut missing = Vec::new();
    // Who may not read it may still be right.
    match config(argocd).await {
        Ok(config) => missing.extend(wanted.settings(&config).into_iter().map(Need::Setting)),
        Err(_) => missing.extend(wanted.options.as_ref().map(|options| {
            Need::Unseen(format!(
                "whether {{}} builds with {options}, which this repository needs, cannot be seen: you may not read its ConfigMap {CONFIG}"
            ))
        })),
    }
    missing.extend(plugins(argocd, &wanted).await?);
    Ok(missing)
}

/// The settings alone, from the ConfigMap as it is now.
pub async fn settings(cx: &Context, config: &Value) -> Result<Vec<Setting>> {
    Ok(Wanted::of(cx).await?.settings(config))
}

/// What the environment needs.
struct Wanted {
    /// Options with which kustomize builds, where Argo CD itself lets it build.
    options: Option<String>,
    plugins: BTreeSet<String>,
    /// Kinds that ask for an address, each with an Application that has one.
    addressed: BTreeMap<String, String>,
}

impl Wanted {
    async fn of(cx: &Context) -> Result<Wanted> {
        let addressed = addressed(cx.planned().await?);
        // A sample that is not written yet needs nothing else.
        if cx.spec.sample && !sample::is_sample(&cx.spec.repo).await? {
            overlay::check_sample(&cx.spec, &cx.cluster_name())?;
            return Ok(Wanted { options: None, plugins: BTreeSet::new(), addressed });
        }
        let overlay = cx.overlay().await?;
        let applications = &overlay.prediction.applications;
        let plain = applications.iter().any(|app| app.plugin.is_none());
        let preset = overlay.preset.as_ref().filter(|_| plain);
        Ok(Wanted {
            options: preset.map(|preset| preset.build_options.clone()),
            plugins: applications.iter().filter_map(|app| Some(app.plugin.as_deref()?.to_owned())).collect(),
            addressed,
        })
    }

    fn settings(&self, config: &Value) -> Vec<Setting> {
        let now = |key: &str| config["data"][key].as_str().map(str::to_owned);
        let mut settings = Vec::new();
        let before = now(OPTIONS);
        if let Some(wanted) = &self.options
            && let Some((lacking, after)) = merged(before.as_deref().unwrap_or_default(), wanted)
        {
            let why = format!("{{}} builds without {lacking}, which this repository needs");
            settings.push(Setting { key: OPTIONS, before, after, why });
        }
        // One key for all kinds, as it was written before there was one for each.
        let older = now("resource.customizations").unwrap_or_default();
        let is_about = |line: &str, kind: &str| line.trim_end_matches(':').rsplit('/').next() == Some(kind);
        for (kind, key) in HEALTH {
            let Some(application) = self.addressed.get(kind) else { continue };
            if now(key).is_none() && !older.lines().any(|line| is_about(line, kind)) {
                let why = format!(
                    "to {{}}, {application} is healthy only once its {kind} is given an address: where nothing hands out addresses, `up` waits for it until its --timeout"
                );
                settings.push(Setting { key, before: None, after: HEALTHY.to_owned(), why });
            }
        }
        settings
    }
}

/// What is not healthy to an Argo CD without a word on it, until somebody gives it an address.
fn addressed(planned: &[Planned]) -> BTreeMap<String, String> {
    let asks = |one: &&Planned| one.object["kind"] == "Ingress" || one.object["spec"]["type"] == "LoadBalancer";
    let kinds = planned.iter().filter(asks);
    kinds.filter_map(|one| Some((one.object["kind"].as_str()?.to_owned(), one.application.clone()))).collect()
}

/// Options of kustomize with the values that they have, in their order.
fn options(text: &str) -> Vec<(String, Option<String>)> {
    let mut options: Vec<(String, Option<String>)> = Vec::new();
    for word in text.split_whitespace() {
        match (word.split_once('='), options.last_mut()) {
            (Some((option, value)), _) if word.starts_with('-') => options.push((option.into(), Some(value.into()))),
            (_, Some((_, value @ None))) if !word.starts_with('-') => *value = Some(word.to_owned()),
            _ => options.push((word.to_owned(), None)),
        }
    }
    options
}

/// What is lacking of the wanted options, and all of them together with those that are there; none if nothing is.
fn merged(there: &str, wanted: &str) -> Option<(String, String)> {
    let shown = |options: &[(String, Option<String>)]| {
        let word = |(option, value): &(String, Option<String>)| match value {
            Some(value) => format!("{option} {value}"),
            None => option.clone(),
        };
        options.iter().map(word).collect::<Vec<String>>().join(" ")
    };
    let mut all = options(there);
    let lacking: Vec<_> = options(wanted).into_iter().filter(|option| !all.contains(option)).collect();
    if lacking.is_empty() {
        return None;
    }
    all.retain(|(option, _)| !lacking.iter().any(|(other, _)| other == option));
    all.extend(lacking.iter().cloned());
    Some((shown(&lacking), shown(&all)))
}

/// Plugins that no repo-server has.
async fn plugins(argocd: &ArgoCd, wanted: &Wanted) -> Result<Vec<Need>> {
    if wanted.plugins.is_empty() {
        return Ok(Vec::new());
    }
    let pods = argocd.list(&Type::new("v1", "Pod"), "app.kubernetes.io/name=argocd-repo-server").await?;
    let (mut there, mut unseen) = (BTreeSet::new(), false);
    for config in &plugin_servers(&pods) {
        let config = match config {
            Some(name) => argocd.get(&config_type(), name).await.ok().flatten(),
            None => None,
        };
        match config.as_ref().and_then(plugin_name) {
            Some(name) => drop(there.insert(name)),
            None => unseen = true,
        }
    }
    let missing = wanted.plugins.difference(&there).map(|name| match unseen {
        true => Need::Unseen(format!(
            "whether {{}} has the plugin {name}, which this repository needs, cannot be seen from its repo-server's pod"
        )),
        false => Need::Plugin(name.clone()),
    });
    Ok(missing.collect())
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
    fn options_that_are_not_set_are_named_and_those_of_others_stay() {
        let wanted = "--enable-helm --load-restrictor LoadRestrictionsNone";
        assert_eq!(merged("", wanted), Some((wanted.to_owned(), wanted.to_owned())));
        assert_eq!(merged("--load-restrictor=LoadRestrictionsNone --enable-helm --x", wanted), None);
        let (lacking, all) = merged("--x y --load-restrictor LoadRestrictionsRootOnly", wanted).unwrap();
        assert_eq!((lacking.as_str(), all.as_str()), (wanted, format!("--x y {wanted}").as_str()));
        let (lacking, all) = merged("--enable-helm --x", wanted).unwrap();
        assert_eq!(lacking, "--load-restrictor LoadRestrictionsNone");
        assert_eq!(all, "--enable-helm --x --load-restrictor LoadRestrictionsNone");
    }

    #[test]
    fn what_would_wait_for_an_address_is_named_unless_argo_cd_knows_better() {
        let found = |config: Value, object: Value| {
            let addressed = addressed(&[Planned { application: "portal".into(), app: "portal".into(), object }]);
            let wanted = Wanted { options: None, plugins: BTreeSet::new(), addressed };
            wanted.settings(&config).into_iter().map(|setting| setting.key).collect::<Vec<_>>()
        };
        let service = |of: &str| json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": of}});
        let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {}});
        assert_eq!(found(json!({}), service("LoadBalancer")), ["resource.customizations.health.Service"]);
        assert!(found(json!({}), service("ClusterIP")).is_empty());
        let told = json!({"data": {"resource.customizations.health.Service": "return {}"}});
        assert!(found(told.clone(), service("LoadBalancer")).is_empty());
        let older = json!({"data": {"resource.customizations": "networking.k8s.io/Ingress:\n  health.lua: x\n"}});
        assert!(found(older, ingress.clone()).is_empty());
        assert_eq!(found(told, ingress).len(), 1);
    }

    #[test]
    fn a_command_can_be_pasted_whatever_the_value() {
        let command = set("lab", "argocd", "k", Some("it's \"so\""));
        assert!(command.ends_with(r#"-p '{"data":{"k":"it'\''s \"so\""}}'"#), "{command}");
        assert!(set("lab", "argocd", "k", None).ends_with(r#"-p '{"data":{"k":null}}'"#));
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
