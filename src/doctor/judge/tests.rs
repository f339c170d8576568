use super::*;
use crate::cell::{Level, WallReport};
use crate::doctor::question::Quota;

/// What a probe says in a cell as it should be.
fn good() -> Vec<Fact> {
    let tried = |deed, errno: Errno| Fact::Tried {
        deed,
        errno: Some(errno.raw_os_error()),
    };
    vec![
        Fact::Ids([NOBODY; 4]),
        Fact::Capabilities([0; 5]),
        Fact::NoNewPrivileges(true),
        Fact::SeccompMode(2),
        Fact::Open(vec![0, 1, 2]),
        Fact::Environment(vec!["HOME".to_owned(), "PATH".to_owned()]),
        Fact::InitEnvironment(0),
        tried(Deed::Route, Errno::NETUNREACH),
        tried(Deed::Loopback, Errno::CONNREFUSED),
        tried(Deed::Vsock, Errno::AFNOSUPPORT),
        tried(Deed::Namespace, Errno::PERM),
        tried(Deed::ReadCanary, Errno::NOENT),
        tried(Deed::ReadShadow, Errno::NOENT),
        tried(Deed::WriteUsr, Errno::ROFS),
        Fact::Locked(Vec::new()),
        took(Quota::Pipes, 1, None),
        took(Quota::InotifyWatches, 1, None),
    ]
}

fn took(quota: Quota, count: u64, error: Option<Errno>) -> Fact {
    let errno = error.map(Errno::raw_os_error);
    Fact::Took {
        quota,
        count,
        errno,
    }
}

/// What a neighbour says that has all it may have.
fn neighbour() -> Vec<Fact> {
    vec![
        took(Quota::InotifyInstances, 8, Some(Errno::MFILE)),
        took(Quota::InotifyWatches, 8192, Some(Errno::NOSPC)),
        took(Quota::Pipes, 64, Some(Errno::PERM)),
        Fact::Holds(vec!["/".to_owned(), "/dev/null".to_owned()]),
    ]
}

/// The same facts, each with what a program without walls would find.
fn bad() -> Vec<Fact> {
    let changed = |fact| match fact {
        Fact::Ids(_) => Fact::Ids([NOBODY, 0, NOBODY, NOBODY]),
        Fact::Capabilities(_) => Fact::Capabilities([0, 0, 0, 1 << 21, 0]),
        Fact::NoNewPrivileges(_) => Fact::NoNewPrivileges(false),
        Fact::SeccompMode(_) => Fact::SeccompMode(0),
        Fact::Open(_) => Fact::Open(vec![0, 1, 2, 9]),
        Fact::Environment(_) => Fact::Environment(vec!["PATH".to_owned(), "TOKEN".to_owned()]),
        Fact::InitEnvironment(_) => Fact::InitEnvironment(100),
        Fact::Locked(_) => Fact::Locked(vec!["/dev/null".to_owned()]),
        Fact::Tried { deed, .. } => Fact::Tried { deed, errno: None },
        Fact::Took { quota, .. } => took(quota, 0, Some(Errno::NOSPC)),
        other => other,
    };
    good().into_iter().map(changed).collect()
}

fn outside(was_reached: Option<bool>) -> Outside {
    Outside {
        environment: vec!["HOME".to_owned(), "PATH".to_owned()],
        was_reached,
        neighbour: neighbour(),
        same_uid: Some(0),
    }
}

fn isolation(missing: &[&'static str]) -> Isolation {
    let wall = |name: &&'static str| WallReport {
        name,
        stands: false,
        detail: "why, and what would fix it".to_owned(),
        confines: true,
    };
    Isolation {
        provider: "jail",
        level: Level::Reduced,
        walls: missing.iter().map(wall).collect(),
    }
}

fn judged(said: &[Fact], was_reached: Option<bool>) -> Vec<Check> {
    inside(said, &outside(was_reached), &isolation(&[]))
}

fn failed(checks: &[Check]) -> Vec<&'static str> {
    let failed = checks.iter().filter(|check| check.state == State::Failed);
    failed.map(|check| check.name).collect()
}

#[test]
fn a_cell_as_it_should_be_fails_no_check() {
    let checks = judged(&good(), Some(false));
    assert_eq!(failed(&checks), [""; 0]);
    // Whose uid it is, nobody can say inside.
    assert_eq!(checks.len(), good().len() + 1);
}

#[test]
fn each_fact_that_is_not_as_it_should_be_fails_exactly_its_own_check() {
    let mut names = Vec::new();
    for (place, fact) in bad().into_iter().enumerate() {
        let mut said = good();
        said[place] = fact;
        let failed = failed(&judged(&said, Some(false)));
        assert_eq!(failed.len(), 1, "{:?}", said[place]);
        names.extend(failed);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), good().len());
}

#[test]
fn what_was_not_said_is_not_believed() {
    for place in 0..good().len() {
        let mut said = good();
        let left_out = said.remove(place);
        let checks = judged(&said, Some(false));
        assert_eq!(failed(&checks).len(), 1, "{left_out:?}");
        let found = checks.iter().find_map(|check| check.found.as_deref());
        assert_eq!(found, Some("the probe did not report it"));
    }
    assert_eq!(failed(&judged(&[], Some(false))).len(), good().len());
}

#[test]
fn a_refusal_with_another_error_than_the_walls_proves_nothing() {
    let mut said = good();
    said[7] = Fact::Tried {
        deed: Deed::Route,
        errno: Some(Errno::MFILE.raw_os_error()),
    };
    assert_eq!(failed(&judged(&said, Some(false))), ["network"]);
}

#[test]
fn the_witness_outside_is_believed_before_the_probe() {
    assert_eq!(failed(&judged(&good(), Some(true))), ["host's loopback"]);
}

#[test]
fn where_nobody_could_listen_nothing_is_claimed_of_it() {
    let checks = judged(&good(), None);
    assert_eq!(failed(&checks), [""; 0]);
    assert!(checks.iter().all(|check| check.name != "host's loopback"));
}

#[test]
fn a_failure_points_at_the_wall_that_is_missing_or_else_to_us() {
    let fixes = |missing: &[&'static str]| -> Vec<String> {
        let checks = inside(&bad(), &outside(Some(true)), &isolation(missing));
        let network = checks.into_iter().filter(|check| check.name == "network");
        network.filter_map(|check| check.fix).collect()
    };
    assert_eq!(
        fixes(&["network namespace"]),
        ["Fix the wall `network namespace`, see below."]
    );
    assert!(fixes(&["seccomp"])[0].ends_with("report this as a security problem."));
}

#[test]
fn a_lock_on_a_device_is_felt_where_the_report_says_so_and_nowhere_else() {
    let felt = |path: &str| {
        let mut said = good();
        said[14] = Fact::Locked(vec![path.to_owned()]);
        failed(&inside(
            &said,
            &outside(None),
            &isolation(&["private devices"]),
        ))
        .len()
    };
    assert_eq!((felt("/dev/null"), felt("/etc/ld.so.cache")), (0, 1));
}

#[test]
fn a_neighbour_that_took_too_much_or_nothing_proves_nothing() {
    let judged = |neighbour: Vec<Fact>| {
        let outside = Outside {
            neighbour,
            ..outside(None)
        };
        failed(&inside(&good(), &outside, &isolation(&[])))
    };
    assert_eq!(judged(neighbour()), [""; 0]);
    assert_eq!(judged(Vec::new()), ["locks", "inotify", "pipes"]);
    for (place, wrong) in [
        (0, took(Quota::InotifyInstances, 9, Some(Errno::MFILE))),
        (0, took(Quota::InotifyInstances, 0, Some(Errno::MFILE))),
        (1, took(Quota::InotifyWatches, 8192, None)),
        (1, took(Quota::InotifyWatches, 8192, Some(Errno::MFILE))),
    ] {
        let mut said = neighbour();
        said[place] = wrong;
        assert_eq!(judged(said), ["inotify"]);
    }
    let mut said = neighbour();
    said[3] = Fact::Holds(Vec::new());
    assert_eq!(judged(said), ["locks"]);
}

#[test]
fn a_uid_that_others_have_fails_where_the_report_says_that_it_is_its_own() {
    let judged = |same_uid, missing: &[&'static str]| {
        let outside = Outside {
            same_uid,
            ..outside(None)
        };
        failed(&inside(&good(), &outside, &isolation(missing)))
    };
    assert_eq!(judged(Some(2), &[]), ["uid"]);
    assert_eq!(judged(None, &[]), ["uid"]);
    assert_eq!(judged(Some(2), &["private quotas"]), [""; 0]);
}
