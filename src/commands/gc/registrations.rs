//! What has expired or is orphaned on an Argo CD that others use too, whichever machine made it.

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};

use super::local::Ids;
use super::{Candidate, Found, LeftAlone, What};
use crate::argocd::side::ArgoCd;
use crate::commands::App;
use crate::error::{Error, Result};
use crate::expiry;
use crate::shared::environments::{self, Registered};
use crate::shared::guest::{Guest, Reach};
use crate::shared::place;
use crate::spec::SharedArgoCd;

/// Questions to clusters under way at once.
const AT_ONCE: usize = 4;
/// Another machine's `up` may be on its way for so long.
const YOUNG: SignedDuration = SignedDuration::from_hours(1);

/// One environment there, and why it is to go.
pub struct Visit {
    guest: Guest,
    seen: Registered,
    place: SharedArgoCd,
    reach: Reach,
}

/// Environments there which no journal here has; returns the ids of all.
pub async fn look(app: &App, place: &SharedArgoCd, recorded: &Ids, now: Timestamp, found: &mut Found) -> Result<Ids> {
    let argocd = open(place).await?;
    let all = environments::all(&argocd).await?;
    let ids = all.iter().map(|one| one.id.clone()).collect();
    let others = all.into_iter().filter(|one| !recorded.contains(&one.id));
    let asked = others.map(|seen| {
        let argocd = &argocd;
        async move {
            let guest = Guest::new(&seen, place, &app.dirs, app.ui.clone())?;
            let reach = guest.reach(argocd).await;
            Ok::<_, Error>(Visit { guest, seen, place: place.clone(), reach })
        }
    });
    let answers: Vec<Result<Visit>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    for book in answers {
        let book = book?;
        let name = book.seen.name.to_string();
        match reason(&book.seen, &book.reach, now) {
            Some(reason) => found.candidates.push(Candidate {
                name,
                place: place.place(),
                reason,
                what: What::Registration(Box::new(book)),
            }),
            None if book.reach != Reach::Yes => {
                let why = match &book.reach {
                    Reach::Unknown(why) => format!("whether its cluster answers is not known: {why}"),
                    _ => "its cluster does not answer, but it is younger than an hour".into(),
                };
                found.left_alone.push(LeftAlone { name, why });
            }
            None => {}
        }
    }
    Ok(ids)
}

async fn open(place: &SharedArgoCd) -> Result<ArgoCd> {
    let argocd = place::open(place).await?;
    argocd
        .kube
        .ready()
        .await
        .map_err(|error| error.context(format!("the Argo CD in {} does not answer", place.place())))?;
    Ok(argocd)
}

/// Why an environment there is nobody's any more; none if it may be somebody's.
fn reason(seen: &Registered, reach: &Reach, now: Timestamp) -> Option<String> {
    if let Some(expires) = seen.expires.filter(|expires| expiry::is_over(Some(*expires), now)) {
        return Some(expiry::shown(expires, now));
    }
    let young = seen.created.is_none_or(|created| now.duration_since(created) < YOUNG);
    match reach {
        _ if young => None,
        _ if seen.authority.is_none() => Some("it has no cluster Secret any more".into()),
        Reach::No(why) => {
            let server = seen.server.as_deref().unwrap_or("no address");
            Some(format!("its cluster does not answer at {server}: {why}"))
        }
        Reach::Yes | Reach::Unknown(_) => None,
    }
}

impl Visit {
    /// Looks again whether the reason holds, then takes it off.
    pub async fn take_back(&self) -> Result<Option<String>> {
        let argocd = open(&self.place).await?;
        let again = environments::all(&argocd).await?.into_iter().find(|one| one.id == self.seen.id);
        let Some(again) = again else { return Ok(None) };
        if reason(&again, &self.reach, Timestamp::now()).is_none() || again.authority != self.seen.authority {
            return Ok(Some("it is in use again".into()));
        }
        let silent = match &self.reach {
            Reach::No(why) => Some(why.clone()),
            Reach::Yes | Reach::Unknown(_) => None,
        };
        let left = self.guest.take_back(silent).await?;
        let left: Vec<String> = left.named().iter().map(|(kind, name)| format!("{kind} {name}")).collect();
        match left.is_empty() {
            true => Ok(None),
            false => {
                Err(Error::failed(format!("of {} there is still something in {}", self.seen.name, self.place.place()))
                    .detail(left.join("\n")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(created: &str, expires: Option<&str>, cluster: bool) -> Registered {
        Registered {
            name: "alice".parse().unwrap(),
            id: "1".into(),
            created: Some(created.parse().unwrap()),
            expires: expires.map(|at| at.parse().unwrap()),
            token_expires: None,
            server: Some("https://alice:6443".into()),
            authority: cluster.then(String::new),
            repository: None,
            applications: 0,
            healthy: 0,
        }
    }

    #[test]
    fn only_what_has_expired_or_has_no_cluster_goes() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T23:30:00Z");
        let dead = Reach::No("no answer".into());
        let goes = |one: Registered, reach: &Reach| reason(&one, reach, now);
        assert!(goes(seen(new, Some(old), true), &Reach::Yes).unwrap().starts_with("expired 24 h ago"));
        assert!(goes(seen(old, Some("2026-01-03T00:00:00Z"), true), &Reach::Yes).is_none());
        assert!(goes(seen(old, None, true), &Reach::Yes).is_none());
        assert!(goes(seen(old, None, true), &Reach::Unknown(String::new())).is_none());
        assert!(goes(seen(old, None, true), &dead).unwrap().contains("does not answer at https://alice:6443"));
        assert!(goes(seen(old, None, false), &dead).unwrap().contains("no cluster Secret"));
        assert!(goes(seen(new, None, true), &dead).is_none(), "its up may be on its way");
        assert!(goes(seen(new, None, false), &dead).is_none(), "its up may be on its way");
    }
}
