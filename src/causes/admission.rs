//! Objects that an admission policy or webhook turns away.

use super::view::View;
use super::words::{group, innermost, pattern};
use super::{Cause, Family};

pub const FAMILY: Family =
    Family { codes: &["admission-denied", "pod-security", "admission-webhook-unreachable"], explain };

fn explain(view: &View) -> Option<Cause> {
    view.refusals.iter().find_map(|refusal| {
        let message = refusal.message;
        let made = |code| Cause::new(code).because(refusal.link());
        if let Some(found) =
            pattern!(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.+)").captures(message)
        {
            let hint = format!("kubectl get validatingadmissionpolicy {} -o yaml", &found[1]);
            return Some(made("admission-denied").because(format!("policy {}: {}", &found[1], &found[2])).hint(hint));
        }
        if let Some(found) = pattern!(r#"(?s)admission webhook "([^"]+)" denied the request:? ?(.*)"#).captures(message)
        {
            let hint = format!(
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -B5 -A20 {}",
                &found[1]
            );
            return Some(made("admission-denied").because(format!("webhook {}: {}", &found[1], &found[2])).hint(hint));
        }
        if let Some(webhook) = group(pattern!(r#"failed calling webhook "([^"]+)""#), message) {
            let cause = made("admission-webhook-unreachable").because(format!("webhook {webhook} does not answer"));
            let hint = group(pattern!(r"https?://[^./]+\.([^./:]+)\.svc"), message).map_or(
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations".to_owned(),
                |namespace| format!("kubectl -n {namespace} get pods,endpoints"),
            );
            return Some(cause.because(innermost(message)).hint(hint));
        }
        let found = pattern!(r#"(?s)violates PodSecurity "([^"]+)": (.+)"#).captures(message)?;
        // Each complaint is followed by an example in brackets; the complaints are what counts.
        let complaints = pattern!(r" \([^()]*\)").replace_all(&found[2], "");
        let hint = format!("kubectl get namespace {} -o jsonpath='{{.metadata.labels}}'", refusal.namespace);
        Some(made("pod-security").because(format!("pod security level {}: {complaints}", &found[1])).hint(hint))
    })
}
