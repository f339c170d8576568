use super::*;

fn statuses() -> Vec<Status> {
    let failed = Failed {
        step: "mounting the root".to_owned(),
        errno: libc::EPERM,
    };
    let missing = vec![Missing {
        wall: Wall::Proc,
        errno: libc::EPERM,
    }];
    let exit = Exit {
        status: 9,
        cpu_micros: 12_345,
        max_rss: 1 << 40,
        left: 3,
    };
    vec![
        Status::Started,
        Status::Ready { missing },
        Status::Locked {
            landlock: 7,
            seccomp: true,
        },
        Status::Failed(failed),
        Status::Exited(exit),
    ]
}

#[test]
fn a_status_survives_the_trip() {
    for status in statuses() {
        assert_eq!(Status::from_bytes(&status.to_bytes()).unwrap(), status);
    }
}

#[test]
fn a_cut_lengthened_or_flipped_message_is_an_error_or_another_message_but_never_a_panic() {
    for status in statuses() {
        let bytes = status.to_bytes();
        for cut in 0..bytes.len() {
            assert!(Status::from_bytes(&bytes[..cut]).is_err());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let _ = Status::from_bytes(&flipped);
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Status::from_bytes(&longer).is_err());
    }
}

#[test]
fn a_policy_survives_the_trip_through_its_memory_file() {
    let policy = Policy {
        argv: vec!["/usr/bin/python3".into(), "a b".into(), "".into()],
        env: vec!["LANG=C.UTF-8".into()],
        limits: Limits::default(),
        listen: Some(3128),
        waits: true,
    };
    let back = Policy::from_memory_file(policy.to_memory_file().unwrap()).unwrap();
    assert_eq!(back.argv, policy.argv);
    assert_eq!(back.env, policy.env);
    assert_eq!(back.limits, policy.limits);
    assert_eq!(back.listen, policy.listen);
    assert_eq!(back.waits, policy.waits);
}

#[test]
fn a_spawner_spec_survives_the_trip_through_its_memory_file() {
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
        is_grouped: true,
        sweep: vec!["/sys/fs/cgroup/hotcell-1".into()],
        zygote: Some(Zygote {
            fresh: true,
            has_input: false,
            first: "#".to_owned(),
            argv: vec!["/usr/bin/python3".into(), "main.py".into()],
            env: vec!["HOME=/".into()],
            script: "main.py".into(),
            warm: "import re".into(),
            fork: String::new(),
            leave: "exit".into(),
        }),
    };
    let file = spec.to_memory_file().unwrap();
    assert_eq!(SpawnerSpec::from_memory_file(file).unwrap(), spec);
}
