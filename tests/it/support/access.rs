//! What a user may do in a fake cluster, and the tokens that it gives.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::http::Request;

#[derive(Clone, Default)]
pub struct Access {
    denied: BTreeSet<String>,
    /// The UID of each token's account, and when it ends.
    given: BTreeMap<String, (String, jiff::Timestamp)>,
}

impl Access {
    pub fn deny(&mut self, rights: &[&str]) {
        self.denied = rights.iter().map(|right| (*right).to_owned()).collect();
    }

    pub fn tokens(&self) -> Vec<String> {
        self.given.keys().cloned().collect()
    }

    /// Answers a review, or a request for a token; `accounts` are the UIDs of those that there are, and `roles` the
    /// ClusterRoles and Roles, all of which are taken to be bound to every account.
    pub fn post(
        &mut self,
        path: &str,
        request: &Request,
        accounts: &BTreeMap<String, String>,
        roles: &[Value],
    ) -> Option<(u16, Value)> {
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        if path.ends_with("/selfsubjectaccessreviews") {
            let token = request.headers.get("authorization").and_then(|header| header.strip_prefix("Bearer "));
            // Any other is a person's, whose kubeconfig has it.
            let of_account = token.filter(|token| token.starts_with("bearer-of-"));
            if of_account.is_some_and(|token| !self.knows(token, accounts)) {
                let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
                return Some((401, body));
            }
            let asked = &body["spec"]["resourceAttributes"];
            let part = |key: &str| asked[key].as_str().filter(|text| !text.is_empty());
            let resource = [part("resource"), part("subresource")].into_iter().flatten().collect::<Vec<_>>().join("/");
            let denied = self.denied.contains(&format!("{} {resource}", part("verb")?));
            let given = |role: &Value| {
                let of = &role["metadata"]["namespace"];
                (of.is_null() || *of == asked["namespace"])
                    && role["rules"].as_array().unwrap().iter().any(|rule| {
                        let has = |list: &str, wanted: &str| {
                            rule[list].as_array().is_some_and(|all| all.iter().any(|one| one == wanted || one == "*"))
                        };
                        let group = part("group").unwrap_or_default();
                        has("verbs", part("verb").unwrap()) && has("apiGroups", group) && has("resources", &resource)
                    })
            };
            let allowed = !denied && (of_account.is_none() || roles.iter().any(given));
            return Some((201, json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}})));
        }
        let account = path.strip_suffix("/token")?.rsplit('/').next()?;
        let Some(uid) = accounts.get(account) else {
            return Some((
                404,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "not found", "reason": "NotFound", "code": 404}),
            ));
        };
        let seconds = body["spec"]["expirationSeconds"].as_i64()?;
        let ends = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + seconds).unwrap();
        let token = format!("bearer-of-{account}-{:016x}", rand::random::<u64>());
        self.given.insert(token.clone(), (uid.clone(), ends));
        let status = json!({"token": token, "expirationTimestamp": ends.to_string()});
        Some((201, json!({"kind": "TokenRequest", "status": status})))
    }

    fn knows(&self, token: &str, accounts: &BTreeMap<String, String>) -> bool {
        let given = self.given.get(token);
        given.is_some_and(|(uid, ends)| accounts.values().any(|there| there == uid) && *ends > jiff::Timestamp::now())
    }
}
