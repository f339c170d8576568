use std::os::fd::AsFd;

use rustix::net::RecvFlags;

use super::*;
use crate::codec::tests::check;
use crate::codec::{from_memory_file, to_memory_file};

const ALL_WALLS: WorkerWalls = WorkerWalls {
    landlock: 7,
    seccomp: true,
};

#[test]
fn every_status_survives_the_trip_and_no_damage_panics() {
    check(&Status::Started);
    let missing = Wall::ALL.map(|wall| Missing {
        wall,
        errno: libc::EPERM,
    });
    check(&Status::Ready {
        missing: missing.to_vec(),
    });
    check(&Status::Locked(ALL_WALLS));
    check(&Status::Failed(Failed {
        step: "mounting the root".to_owned(),
        errno: libc::EPERM,
    }));
    check(&Status::Exited(Exit {
        status: 9,
        cpu_micros: 12_345,
        max_rss: 1 << 40,
        left: 3,
    }));
}

#[test]
fn requests_and_start_messages_survive_the_trip_and_no_damage_panics() {
    check(&SpawnRequest {
        slot: 254,
        memory: 1 << 40,
        cpus: 2.5,
        has_devices: true,
        has_cgroup_directory: true,
        has_library: true,
    });
    check(&Start {
        cpu_seconds: 31,
        required: ALL_WALLS,
        prelude: "import sys".to_owned(),
    });
}

#[test]
fn walls_satisfy_what_is_not_stronger() {
    let walls = |landlock, seccomp| WorkerWalls { landlock, seccomp };
    assert!(walls(6, true).satisfy(walls(6, true)));
    assert!(walls(6, true).satisfy(walls(0, false)));
    assert!(walls(0, false).satisfy(walls(0, false)));
    assert!(!walls(5, true).satisfy(walls(6, true)));
    assert!(!walls(6, false).satisfy(walls(6, true)));
}

#[test]
fn a_policy_survives_the_trip_and_no_damage_panics() {
    check(&Policy {
        argv: vec!["/usr/bin/python3".into(), "a b".into(), "".into()],
        env: vec!["LANG=C.UTF-8".into()],
        limits: Limits::default(),
        listen: Some(3128),
        terminal: Some(Terminal {
            rows: 24,
            columns: 80,
            has_stderr: true,
        }),
        prestarted: true,
        loaded: Some(Loaded {
            argv: vec!["/usr/bin/python3".into()],
            script: "main.py".into(),
            starter: ".home/start.py".into(),
            leave: "exit".into(),
            glibc: 34,
        }),
    });
}

#[test]
fn a_spawner_spec_survives_the_trip_and_no_damage_panics() {
    let tree = Tree {
        host: "/srv/python".into(),
        cell: "/opt/python".into(),
    };
    let mount = Mount {
        host: "/srv/data".into(),
        cell: "/data".into(),
        access: Access::Write,
    };
    let link = Link {
        path: "/modules".into(),
        target: "/workspace/modules".into(),
    };
    let spec = SpawnerSpec {
        view: View {
            trees: vec![tree],
            mounts: vec![mount],
            links: vec![link],
        },
        uid_base: Some(1 << 30),
        subordinate: Some(Subordinate {
            uid: 100_000,
            gid: 200_000,
            programs: "/usr/bin".into(),
        }),
        has_cgroups: true,
        sweep: vec!["/sys/fs/cgroup/hotcell-1".into()],
        zygote: Some(Zygote {
            fresh: true,
            has_input: false,
            gathers: false,
            lingers: true,
            first: "#".to_owned(),
            argv: vec!["/usr/bin/python3".into(), "main.py".into()],
            env: vec!["HOME=/".into()],
            script: "main.py".into(),
            warm: "import re".into(),
            fork: "".into(),
            leave: "exit".into(),
        }),
    };
    check(&spec);
    let file = to_memory_file(&spec).expect("a memory file");
    assert_eq!(from_memory_file::<SpawnerSpec>(&file).expect("ours"), spec);
}

#[test]
fn a_start_message_with_the_longest_prelude_can_be_sent_and_a_longer_one_is_an_error() {
    let start = |length| Start {
        cpu_seconds: u64::MAX,
        required: ALL_WALLS,
        prelude: "x".repeat(length),
    };
    let (ours, theirs) = crate::wire::pair().unwrap();
    let send = |length| {
        let message = crate::codec::to_bytes(&start(length));
        crate::wire::send(ours.as_fd(), &message, &[])
    };
    send(LONGEST_PRELUDE).unwrap();
    let received = crate::wire::receive(theirs.as_fd(), RecvFlags::empty());
    let received = received.unwrap().unwrap().bytes;
    let whole: Start = crate::codec::from_bytes(&received).unwrap();
    assert_eq!(whole, start(LONGEST_PRELUDE));
    let error = send(LONGEST_PRELUDE + 64).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
}
