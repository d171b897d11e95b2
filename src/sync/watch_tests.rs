use notify::event::{AccessKind, CreateKind, Flag, ModifyKind};

use super::*;

fn places() -> Places {
    Places { git: vec!["/tre/.git".into()] }
}

fn event(kind: EventKind, path: &str) -> notify::Result<Event> {
    Ok(Event::new(kind).add_path(path.into()))
}

#[test]
fn only_what_can_change_the_work_tree_is_recorded() {
    let mut seen = Seen::default();
    let modify = EventKind::Modify(ModifyKind::Any);
    for path in ["/tre/.git/objects/ab/cd", "/tre/.git/index", "/tre/.git/logs/HEAD", "/tre/.git/refs/k8tre/alice"] {
        record(&places(), &mut seen, event(modify, path));
    }
    record(&places(), &mut seen, event(EventKind::Access(AccessKind::Any), "/tre/a.yaml"));
    assert!(seen.paths.is_empty() && seen.first.is_none(), "{seen:?}");
    for path in ["/tre/a.yaml", "/tre/.git/HEAD", "/tre/.git/refs/heads/topic/x"] {
        record(&places(), &mut seen, event(modify, path));
    }
    assert_eq!(seen.paths.len(), 3);
}

#[test]
fn what_is_remembered_is_bounded_and_nothing_is_lost() {
    let mut seen = Seen::default();
    for number in 0..10_000 {
        record(&places(), &mut seen, event(EventKind::Create(CreateKind::File), &format!("/tre/{number}")));
    }
    assert!(seen.everything && seen.paths.len() <= PATHS);
    let mut seen = Seen::default();
    record(&places(), &mut seen, Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
    assert!(seen.everything && seen.first.is_some(), "the kernel lost events");
}
