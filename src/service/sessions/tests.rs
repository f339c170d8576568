use super::*;

fn key(caller: Caller, name: &str) -> Key {
    (caller, SessionName::parse(name).unwrap())
}

fn bounded(for_each_caller: usize, in_all: usize) -> Arc<Sessions> {
    Sessions::new(SessionBounds {
        for_each_caller,
        in_all,
        ..SessionBounds::default()
    })
}

fn names(sessions: &Sessions, caller: &Caller) -> Vec<String> {
    let listed = sessions.list(caller);
    listed.iter().map(|it| it.name.to_string()).collect()
}

#[test]
fn two_callers_with_one_name_have_two_sessions() {
    let sessions = bounded(2, 9);
    let (one, other) = (Caller::token(), Caller::anonymous());
    let first = sessions.entry(&key(one.clone(), "a")).unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &sessions.entry(&key(one.clone(), "a")).unwrap()
    ));
    assert_eq!(names(&sessions, &other), [""; 0]);
    let name = SessionName::parse("a").unwrap();
    assert!(!sessions.close(&other, &name), "it is not theirs to close");
    let second = sessions.entry(&key(other.clone(), "a")).unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    assert!(sessions.close(&other, &name));
    assert_eq!(names(&sessions, &one), ["a"]);
}

#[test]
fn sessions_are_bounded_for_each_caller_and_in_all() {
    let sessions = bounded(2, 3);
    let (one, other) = (Caller::token(), Caller::anonymous());
    for name in ["a", "b"] {
        assert!(sessions.entry(&key(one.clone(), name)).is_ok());
    }
    let refused = |caller: &Caller, name| sessions.entry(&key(caller.clone(), name)).err();
    assert_eq!(refused(&one, "c"), Some(Busy::Sessions(2)));
    assert_eq!(refused(&one, "b"), None, "it is there");
    assert_eq!(refused(&other, "a"), None);
    assert_eq!(refused(&other, "b"), Some(Busy::Sessions(3)));
}

#[test]
fn one_that_has_ended_is_remembered_and_takes_no_place() {
    let sessions = bounded(1, 1);
    let one = Caller::local();
    let first = sessions.entry(&key(one.clone(), "a")).unwrap();
    let lost = State {
        lost: Some("it ended".to_owned()),
        ..State::default()
    };
    sessions.tend(&key(one.clone(), "a"), &first, &lost);
    assert_eq!(names(&sessions, &one), [""; 0]);
    for name in ["b", "c", "d"] {
        let key = key(one.clone(), name);
        let entry = sessions.entry(&key).unwrap();
        sessions.tend(&key, &entry, &lost);
    }
    assert!(sessions.lock().len() <= 2, "not without end");
    let key = key(one, "e");
    let entry = sessions.entry(&key).unwrap();
    sessions.tend(&key, &entry, &State::default());
    assert!(
        !sessions.holds(&key, &entry),
        "there is nothing to remember"
    );
}
