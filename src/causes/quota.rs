//! A ResourceQuota that is used up.

use super::view::View;
use super::words::pattern;
use super::{Cause, Family};

pub const FAMILY: Family = Family { codes: &["quota"], explain };

fn explain(view: &View) -> Option<Cause> {
    view.refusals.iter().find_map(|refusal| {
        let cause = Cause::new("quota").because(refusal.link());
        let look = |name: &str| format!("kubectl -n {} describe resourcequota {name}", refusal.namespace);
        if let Some(found) = pattern!(r"exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: ([^\s]+)")
            .captures(refusal.message)
        {
            let (name, requested, used, limited) = (&found[1], &found[2], &found[3], &found[4]);
            let root = format!("quota {name} is used up: requested {requested}, used {used}, limit {limited}");
            return Some(cause.because(root).hint(look(name)));
        }
        let found = pattern!(r"failed quota: ([^:]+): (must specify .+)").captures(refusal.message)?;
        Some(cause.because(format!("quota {}: its containers {}", &found[1], &found[2])).hint(look(&found[1])))
    })
}
