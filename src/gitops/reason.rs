//! Why an ApplicationSet makes no Application here.

use std::collections::BTreeSet;

use super::appset::Pattern;
use super::generate::Event;
use super::selector::Miss;
use super::world::World;

/// The reason in one sentence, from what happened in the generators.
pub fn reason(events: &[Event], world: &World) -> String {
    let of_event = |event: &Event| match event {
        Event::NoFolder(patterns) => Some(format!("no folder matches {}", listed(patterns))),
        Event::NoFile(patterns) => Some(format!("no file matches {}", listed(patterns))),
        Event::Filtered => Some("the generator's own selector leaves nothing over".into()),
        Event::EmptyList => Some("its list has no elements".into()),
        Event::Selection { .. } | Event::Folders(_) => None,
    };
    let mut reasons: Vec<String> = events.iter().filter_map(of_event).chain(unselected(events, world)).collect();
    let mut told = BTreeSet::new();
    reasons.retain(|reason| told.insert(reason.clone()));
    match reasons.is_empty() {
        true => "its generators give nothing".into(),
        false => reasons.join("; "),
    }
}

fn listed(patterns: &[Pattern]) -> String {
    let wanted = patterns.iter().filter(|pattern| !pattern.exclude).map(|pattern| pattern.path.as_str());
    let mut text = wanted.collect::<Vec<_>>().join(" or ");
    if patterns.iter().any(|pattern| pattern.exclude) {
        text.push_str(" without being excluded");
    }
    text
}

/// The cluster and the selection that come nearest tell most.
fn unselected(events: &[Event], world: &World) -> Option<String> {
    let selections: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Selection { wanted, written, selected: false, .. } => Some((wanted, written)),
            _ => None,
        })
        .collect();
    if selections.is_empty() || events.iter().any(|e| matches!(e, Event::Selection { selected: true, .. })) {
        return None;
    }
    let mut nearest: Option<(String, Vec<Miss>)> = None;
    let mut written = None;
    for (wanted, as_written) in &selections {
        for (cluster, misses) in world.misses(wanted) {
            if nearest.as_ref().is_none_or(|(_, found)| misses.len() < found.len()) {
                nearest = Some((cluster.to_owned(), misses));
                written = Some(*as_written);
            }
        }
    }
    let (Some((cluster, misses)), Some(written)) = (nearest, written) else {
        return Some("no cluster is registered".into());
    };
    let from_folders = |key: &str| written.labels.get(key).is_some_and(|value| value.contains("{{"));
    let offered = |key: &str| -> String {
        let values: BTreeSet<&str> = selections.iter().filter_map(|(w, _)| Some(w.labels.get(key)?.as_str())).collect();
        values.into_iter().collect::<Vec<_>>().join(", ")
    };
    let explained = misses.iter().map(|miss| match miss {
        Miss::Label { key, found: Some(found), .. } if from_folders(key) => {
            format!("no folder is for {key}={found} of cluster {cluster} (there is: {})", offered(key))
        }
        Miss::Label { key, found: None, .. } if from_folders(key) => {
            format!("cluster {cluster} has no label {key} (there are folders for: {})", offered(key))
        }
        Miss::Label { key, wanted, found: Some(found) } => {
            format!("the label {key} of cluster {cluster} is {found}, not {wanted}")
        }
        Miss::Label { key, wanted, found: None } => format!("cluster {cluster} has no label {key}={wanted}"),
        Miss::Expression { key, found: Some(found), .. } if key.contains("skip") => {
            format!("the label {key}={found} of cluster {cluster} switches it off")
        }
        Miss::Expression { key, wanted, found: Some(found) } => {
            format!("cluster {cluster} has {key}={found}, which is not \"{wanted}\"")
        }
        Miss::Expression { wanted, found: None, .. } => format!("cluster {cluster} has no label for \"{wanted}\""),
    });
    Some(explained.collect::<Vec<_>>().join("; "))
}
