//! The ways into an Application, from the Services and Ingresses that it deployed. Pure.

use serde_json::Value;

use crate::ports::docker::HostPort;
use crate::ports::forward::{Target, TargetPort};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// An address that works as it is; through what.
    Direct { url: String, through: String },
    /// A connection that k8tre has to hold.
    Forward { scheme: &'static str, service: String, target: Target },
}

/// A name that an Ingress answers to, with the port of this machine that leads to its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub url: String,
    pub ingress: String,
    /// Port of this machine.
    pub port: u16,
    pub secure: bool,
}

/// Names of Ingresses that could be reached through ports of this machine.
pub fn hosts(ingresses: &[Value], published: &[HostPort]) -> Vec<Host> {
    let mut hosts: Vec<Host> = Vec::new();
    for ingress in ingresses {
        let spec = &ingress["spec"];
        for rule in spec["rules"].as_array().into_iter().flatten() {
            let Some(name) = rule["host"].as_str().filter(|name| !name.contains('*')) else { continue };
            let secure = spec["tls"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|tls| tls["hosts"].as_array().is_some_and(|hosts| hosts.iter().any(|host| host == name)));
            let (scheme, inside) = if secure { ("https", 443) } else { ("http", 80) };
            let Some(port) = published.iter().find(|port| port.inside == inside) else { continue };
            let path = rule["http"]["paths"][0]["path"].as_str().filter(|path| path.starts_with('/')).unwrap_or("/");
            let colon = if port.port == inside { String::new() } else { format!(":{}", port.port) };
            hosts.push(Host {
                name: name.to_owned(),
                url: format!("{scheme}://{name}{colon}{path}"),
                ingress: ingress["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                port: port.port,
                secure,
            });
        }
    }
    hosts
}

/// One way to each Service that has pods to lead to, and that no other leads to without a connection to hold.
pub fn of_services(services: &[Value], published: &[HostPort]) -> Vec<Way> {
    let found: Vec<_> = services.iter().filter_map(|one| Some((one, of_service(one, published)?))).collect();
    let pods = |service: &Value| (service["metadata"]["namespace"].clone(), service["spec"]["selector"].clone());
    let direct = found.iter().filter(|(_, way)| matches!(way, Way::Direct { .. })).map(|(one, _)| pods(one));
    let direct: Vec<_> = direct.collect();
    // Pods that an address leads to need no connection to be held as well.
    let needed = |one: &Value, way: &Way| matches!(way, Way::Direct { .. }) || !direct.contains(&pods(one));
    found.into_iter().filter(|(one, way)| needed(one, way)).map(|(_, way)| way).collect()
}

fn of_service(service: &Value, published: &[HostPort]) -> Option<Way> {
    let name = service["metadata"]["name"].as_str()?;
    let labels = service["spec"]["selector"].as_object().filter(|labels| !labels.is_empty())?;
    let port = service["spec"]["ports"].as_array()?.iter().filter(|port| is_tcp(port)).min_by_key(|port| rank(port))?;
    let scheme = if is_https(port) { "https" } else { "http" };
    let node_port = port["nodePort"].as_u64().filter(|port| *port > 0);
    if let Some(on_host) = published.iter().find(|host| Some(u64::from(host.inside)) == node_port) {
        let url = format!("{scheme}://127.0.0.1:{}/", on_host.port);
        return Some(Way::Direct { url, through: format!("NodePort of Service {name}") });
    }
    let selector: Vec<String> =
        labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let number = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok());
    let target = match &port["targetPort"] {
        Value::String(name) => TargetPort::Name(name.clone()),
        given => TargetPort::Number(number(given).or_else(|| number(&port["port"]))?),
    };
    Some(Way::Forward {
        scheme,
        service: name.to_owned(),
        target: Target {
            namespace: service["metadata"]["namespace"].as_str()?.to_owned(),
            selector: selector.join(","),
            port: target,
        },
    })
}

fn is_tcp(port: &Value) -> bool {
    port["protocol"].as_str().is_none_or(|protocol| protocol == "TCP")
}

fn is_https(port: &Value) -> bool {
    let named = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("https"));
    named(&port["name"]) || named(&port["appProtocol"]) || matches!(port["port"].as_u64(), Some(443 | 8443))
}

/// The port that a browser most likely wants comes first.
fn rank(port: &Value) -> u8 {
    let name = port["name"].as_str().unwrap_or_default();
    match port["port"].as_u64() {
        _ if name == "http" || name.starts_with("http-") || name == "web" => 0,
        Some(80) => 1,
        _ if is_https(port) => 2,
        Some(8080 | 8000 | 3000) => 3,
        _ if name.contains("metrics") || name.contains("grpc") => 9,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(ports: Value) -> Value {
        json!({"metadata": {"name": "web", "namespace": "a"}, "spec": {"selector": {"app": "web", "tier": "x"}, "ports": ports}})
    }

    fn host_port(inside: u16, port: u16) -> HostPort {
        HostPort { address: "127.0.0.1".into(), port, inside }
    }

    fn forward(ports: Value) -> (&'static str, TargetPort) {
        match of_service(&service(ports), &[]) {
            Some(Way::Forward { scheme, target, .. }) => {
                assert_eq!((target.namespace.as_str(), target.selector.as_str()), ("a", "app=web,tier=x"));
                (scheme, target.port)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_port_that_a_browser_wants_is_chosen() {
        let metrics = json!({"name": "metrics", "port": 9090, "targetPort": 9090});
        let named = json!([metrics, {"name": "http", "port": 80, "targetPort": "web"}]);
        assert_eq!(forward(named), ("http", TargetPort::Name("web".into())));
        let secure = json!([metrics, {"name": "https", "port": 443, "targetPort": 8443}]);
        assert_eq!(forward(secure), ("https", TargetPort::Number(8443)));
        assert_eq!(forward(json!([{"port": 5000}])), ("http", TargetPort::Number(5000)));
    }

    #[test]
    fn services_without_pods_or_tcp_lead_nowhere() {
        let mut external = service(json!([{"port": 80}]));
        external["spec"]["selector"] = Value::Null;
        assert_eq!(of_service(&external, &[]), None);
        assert_eq!(of_service(&service(json!([{"port": 53, "protocol": "UDP"}])), &[]), None);
    }

    #[test]
    fn a_published_node_port_needs_no_connection_of_ours() {
        let service = service(json!([{"port": 80, "nodePort": 30080}]));
        let direct = Way::Direct { url: "http://127.0.0.1:8088/".into(), through: "NodePort of Service web".into() };
        assert_eq!(of_service(&service, &[host_port(30080, 8088)]), Some(direct));
        assert!(matches!(of_service(&service, &[host_port(80, 8080)]), Some(Way::Forward { .. })));
        let mut inner = self::service(json!([{"port": 80}]));
        inner["metadata"]["name"] = json!("inner");
        let mut other = inner.clone();
        other["spec"]["selector"] = json!({"app": "other"});
        let ways = of_services(&[inner, service, other], &[host_port(30080, 8088)]);
        assert!(matches!(ways[..], [Way::Direct { .. }, Way::Forward { .. }]), "the same pods once: {ways:?}");
    }

    #[test]
    fn hosts_of_ingresses_count_where_their_port_is_published() {
        let ingress = json!({"metadata": {"name": "web"}, "spec": {
            "rules": [{"host": "web.test", "http": {"paths": [{"path": "/hub"}]}}, {"host": "*.test"}],
        }});
        let url = |published: &[HostPort]| {
            hosts(std::slice::from_ref(&ingress), published).into_iter().map(|host| host.url).collect::<Vec<_>>()
        };
        assert_eq!(url(&[host_port(80, 80)]), ["http://web.test/hub"]);
        assert_eq!(url(&[host_port(80, 8080)]), ["http://web.test:8080/hub"]);
        assert!(url(&[host_port(443, 8443)]).is_empty());
    }
}
