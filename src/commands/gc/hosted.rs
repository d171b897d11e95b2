//! vClusters on a host that nobody needs any more, whichever machine made them.

use jiff::{SignedDuration, Timestamp};

use super::local::Ids;
use super::{Candidate, Found, LeftAlone, What};
use crate::commands::App;
use crate::error::Result;
use crate::expiry;
use crate::providers::vcluster::hosted::{Carrier, Hosted};

/// Another machine's `up` may be on its way for so long.
const YOUNG: SignedDuration = SignedDuration::from_hours(1);

/// One of them.
pub struct Abandoned {
    carrier: Carrier,
    seen: Hosted,
    without_end: bool,
}

/// Those that no journal here has; returns the ids of all.
pub async fn look(
    carrier: &Carrier,
    without_end: bool,
    recorded: &Ids,
    now: Timestamp,
    found: &mut Found,
) -> Result<Ids> {
    let all = carrier.all().await?;
    let ids = all.iter().map(|one| one.id.clone()).collect();
    for seen in all.into_iter().filter(|one| !recorded.contains(&one.id)) {
        let name = seen.name.to_string();
        match verdict(&seen, without_end, now) {
            Verdict::Goes(reason) => found.candidates.push(Candidate {
                name,
                place: format!("{}, namespace {}", carrier.context(), seen.namespace),
                reason,
                what: What::Vcluster(Box::new(Abandoned { carrier: carrier.clone(), seen, without_end })),
            }),
            Verdict::Stays(why) => found.left_alone.push(LeftAlone { name, why }),
            Verdict::InUse => {}
        }
    }
    Ok(ids)
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Goes(String),
    Stays(String),
    InUse,
}

fn verdict(seen: &Hosted, without_end: bool, now: Timestamp) -> Verdict {
    let namespace = &seen.namespace;
    match seen.expires {
        Some(expires) if expiry::is_over(Some(expires), now) => Verdict::Goes(expiry::shown(expires, now)),
        Some(_) => Verdict::InUse,
        None if !without_end => {
            Verdict::Stays(format!("its vCluster in the namespace {namespace} has no end; --without-end takes it too"))
        }
        None if seen.created.is_none_or(|created| now.duration_since(created) < YOUNG) => {
            Verdict::Stays(format!("its vCluster in the namespace {namespace} has no end, but is younger than an hour"))
        }
        None => Verdict::Goes("it has no end".to_owned()),
    }
}

impl Abandoned {
    /// Looks again whether the reason holds, then removes it.
    pub async fn remove(&self, app: &App) -> Result<Option<String>> {
        let Some(again) = self.carrier.again(&self.seen.namespace).await? else { return Ok(None) };
        if again.id != self.seen.id || !matches!(verdict(&again, self.without_end, Timestamp::now()), Verdict::Goes(_))
        {
            return Ok(Some("it is in use again".into()));
        }
        self.carrier.remove(&again, &app.dirs, app.ui.clone()).await.map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_goes_and_what_has_no_end_if_somebody_says_so() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let of = |created: &str, expires: Option<&str>| Hosted {
            name: "alice".parse().unwrap(),
            id: "1".into(),
            namespace: "k8tre-alice".into(),
            created: Some(created.parse().unwrap()),
            expires: expires.map(|at| at.parse().unwrap()),
        };
        let (old, young) = ("2026-01-01T00:00:00Z", "2026-01-01T23:30:00Z");
        for without_end in [false, true] {
            let over = verdict(&of(young, Some(old)), without_end, now);
            assert!(matches!(over, Verdict::Goes(why) if why.starts_with("expired 24 h ago")));
            assert_eq!(verdict(&of(old, Some("2026-01-03T00:00:00Z")), without_end, now), Verdict::InUse);
            assert!(matches!(verdict(&of(young, None), without_end, now), Verdict::Stays(_)));
        }
        assert!(matches!(verdict(&of(old, None), false, now), Verdict::Stays(why) if why.contains("--without-end")));
        assert!(matches!(verdict(&of(old, None), true, now), Verdict::Goes(_)));
    }
}
