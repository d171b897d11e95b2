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
pub async fn look(
    app: &App,
    place: &SharedArgoCd,
    silent: bool,
    recorded: &Ids,
    now: Timestamp,
    found: &mut Found,
) -> Result<Ids> {
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
        match verdict(&book.seen, &book.reach, silent, now) {
            Verdict::Goes(reason) => found.candidates.push(Candidate {
                name,
                place: place.place(),
                reason,
                what: What::Registration(Box::new(book)),
            }),
            Verdict::Stays(why) => found.left_alone.push(LeftAlone { name, why }),
            Verdict::InUse => {}
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

/// What becomes of an environment there.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is nobody's any more, and why.
    Goes(String),
    /// It may be somebody's, although it does not look so, and why.
    Stays(String),
    InUse,
}

/// Only an end that is over tells that nobody wants it any more: a cluster that is silent may be a colleague's who
/// has closed the laptop or paused it.
fn verdict(seen: &Registered, reach: &Reach, silent: bool, now: Timestamp) -> Verdict {
    if let Some(expires) = seen.expires.filter(|expires| expiry::is_over(Some(*expires), now)) {
        return Verdict::Goes(expiry::shown(expires, now));
    }
    let why = match reach {
        _ if seen.authority.is_none() => "it has no cluster Secret any more".to_owned(),
        Reach::No(why) => {
            let server = seen.server.as_deref().unwrap_or("no address");
            format!("its cluster does not answer at {server}: {why}")
        }
        Reach::Unknown(why) => return Verdict::Stays(format!("whether its cluster answers is not known: {why}")),
        Reach::Yes => return Verdict::InUse,
    };
    let young = seen.created.is_none_or(|created| now.duration_since(created) < YOUNG);
    match (silent, young) {
        (true, false) => Verdict::Goes(why),
        (true, true) => Verdict::Stays(format!("{why}; but it is younger than an hour")),
        (false, _) => Verdict::Stays(format!("{why}; perhaps it sleeps; --silent takes it too")),
    }
}

impl Visit {
    /// The environment's.
    pub fn id(&self) -> &str {
        &self.seen.id
    }

    /// Looks again whether the reason holds, then takes it off.
    pub async fn take_back(&self) -> Result<Option<String>> {
        let argocd = open(&self.place).await?;
        let again = environments::all(&argocd).await?.into_iter().find(|one| one.id == self.seen.id);
        let Some(again) = again else { return Ok(None) };
        // Whoever listed it as one to go has said that a silent one goes, too.
        let goes = matches!(verdict(&again, &self.reach, true, Timestamp::now()), Verdict::Goes(_));
        if !goes || again.authority != self.seen.authority {
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
    fn only_what_has_expired_goes_and_what_is_silent_if_somebody_says_so() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T23:30:00Z");
        let dead = Reach::No("no answer".into());
        let goes = |one: Registered, reach: &Reach, silent: bool| match verdict(&one, reach, silent, now) {
            Verdict::Goes(why) => Some(why),
            Verdict::Stays(_) | Verdict::InUse => None,
        };
        assert!(goes(seen(new, Some(old), true), &Reach::Yes, false).unwrap().starts_with("expired 24 h ago"));
        for silent in [false, true] {
            assert!(goes(seen(old, Some("2026-01-03T00:00:00Z"), true), &Reach::Yes, silent).is_none());
            assert!(goes(seen(old, None, true), &Reach::Yes, silent).is_none());
            assert!(goes(seen(old, None, true), &Reach::Unknown(String::new()), silent).is_none());
            assert!(goes(seen(new, None, true), &dead, silent).is_none(), "its up may be on its way");
            assert!(goes(seen(new, None, false), &dead, silent).is_none(), "its up may be on its way");
        }
        assert!(goes(seen(old, None, true), &dead, false).is_none(), "a closed laptop looks the same");
        assert!(goes(seen(old, None, false), &dead, false).is_none());
        assert!(goes(seen(old, None, true), &dead, true).unwrap().contains("does not answer at https://alice:6443"));
        assert!(goes(seen(old, None, false), &dead, true).unwrap().contains("no cluster Secret"));
    }
}
