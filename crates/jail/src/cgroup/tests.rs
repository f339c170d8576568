//! On the host's real cgroups, with this test binary as the program inside them.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use std::{env, fs, hint, process, thread};

use super::*;
use crate::policy::Limits;

const MIB: u64 = 1 << 20;

#[test]
fn a_cell_out_of_memory_is_killed_and_counted_for_its_run_alone() {
    let Some(group) = group_or_skip(1) else {
        return;
    };
    group
        .limit(&Limits {
            memory: 32 * MIB,
            ..Limits::default()
        })
        .unwrap();

    let killed = run_in(&group, "memory 256");

    assert_eq!(killed.signal(), Some(9), "{killed}");
    let usage = group.read();
    // Version 2 counts its first victim again when it kills the whole cgroup.
    assert!((1..=2).contains(&usage.oom_kills), "{usage:?}");
    assert!(
        usage
            .memory_peak
            .is_none_or(|peak| (31 * MIB..=32 * MIB).contains(&peak)),
        "{usage:?}"
    );

    // The same slot again: the earlier run is forgotten, and 256 MiB fit.
    group
        .limit(&Limits {
            memory: 384 * MIB,
            ..Limits::default()
        })
        .unwrap();
    assert_eq!(group.read().oom_kills, 0);
    assert!(group.read().memory_peak.is_none_or(|peak| peak < 31 * MIB));
    assert!(run_in(&group, "memory 256").success());
    let usage = group.read();
    assert_eq!(usage.oom_kills, 0, "{usage:?}");
    assert!(
        usage.memory_peak.is_none_or(|peak| peak > 256 * MIB),
        "{usage:?}"
    );
    group.remove().unwrap();
}

#[test]
fn a_cell_with_all_its_tasks_gets_no_more_and_it_is_counted() {
    let Some(group) = group_or_skip(2) else {
        return;
    };
    group
        .limit(&Limits {
            tasks: 64,
            ..Limits::default()
        })
        .unwrap();
    assert!(run_in(&group, "threads 40").success());
    assert_eq!(group.read().tasks_refused, 0);

    group
        .limit(&Limits {
            tasks: 16,
            ..Limits::default()
        })
        .unwrap();
    let refused = run_in(&group, "threads 40");

    assert_eq!(refused.code(), Some(libc::EAGAIN), "{refused}");
    let usage = group.read();
    assert_eq!((usage.tasks_refused, usage.tasks_now), (1, 0), "{usage:?}");
    group.remove().unwrap();
}

#[test]
fn a_program_with_a_fifth_of_a_processor_is_held_up_and_one_with_enough_is_not() {
    let Some(group) = group_or_skip(3) else {
        return;
    };
    let Some(cpu) = &group.cpu else {
        return skip("no cpu controller here");
    };
    // How often the kernel has held it up, which no other load of the machine changes; and how long it took for what it used.
    let burn = |cpus: f64| {
        let limits = Limits {
            cpus,
            ..Limits::default()
        };
        group.limit(&limits).unwrap();
        let held_up = || -> u64 {
            let stat = read(cpu, "cpu.stat").unwrap();
            let mut lines = stat.lines();
            let count = lines.find_map(|line| line.strip_prefix("nr_throttled "));
            count.unwrap().trim().parse().unwrap()
        };
        let (before, start) = (held_up(), Instant::now());
        assert!(run_in(&group, "burn 100").success());
        (held_up() - before, start.elapsed())
    };
    let (held_up, took) = burn(0.2);
    // A machine that is busy gives it less than that anyway.
    assert!(
        held_up > 0 || took >= Duration::from_millis(400),
        "{held_up} times in {took:?}"
    );
    assert_eq!(burn(4.0).0, 0);
    let cpu = group.read().cpu;
    assert!(
        cpu.is_none_or(|cpu| cpu >= Duration::from_millis(90)),
        "{cpu:?}"
    );
    group.remove().unwrap();
}

#[test]
fn limits_of_a_used_group_can_fall_and_rise() {
    let Some(group) = group_or_skip(4) else {
        return;
    };
    for memory in [64 * MIB, 16 * MIB, 512 * MIB] {
        group
            .limit(&Limits {
                memory,
                ..Limits::default()
            })
            .unwrap();
        let file = if group.mode == Mode::V2 {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        assert_eq!(
            read(&group.memory, file).unwrap().trim(),
            memory.to_string()
        );
    }
    group.remove().unwrap();
}

#[test]
fn a_group_in_use_is_not_removed_and_not_waited_for_for_ever() {
    let Some(group) = group_or_skip(5) else {
        return;
    };
    group.limit(&Limits::default()).unwrap();
    let mut child = start_in(&group, "sleep");
    while group.read().tasks_now == 0 {
        thread::yield_now();
    }
    let start = Instant::now();
    assert_eq!(
        group.remove().unwrap_err().kind(),
        io::ErrorKind::ResourceBusy
    );
    assert!(start.elapsed() < Duration::from_secs(4));

    child.kill().unwrap();
    child.wait().unwrap();
    group_or_skip(5).unwrap().remove().unwrap();
}

#[test]
fn killing_a_v2_group_ends_its_processes() {
    let Some(groups) = cgroups_or_skip().filter(|groups| groups.mode() == Mode::V2) else {
        return;
    };
    let group = groups.group(6).unwrap();
    group.limit(&Limits::default()).unwrap();
    let mut child = start_in(&group, "sleep");
    while group.read().tasks_now == 0 {
        thread::yield_now();
    }
    group.kill();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    group.remove().unwrap();
}

#[test]
fn the_groups_of_a_dead_server_are_cleared_and_those_of_a_live_one_are_not() {
    let Some(groups) = cgroups_or_skip() else {
        return;
    };
    let mut server = Command::new("sleep").arg("60").spawn().unwrap();
    let other = Owner::of_process(server.id()).unwrap();
    let bases = groups.bases_of(&other);
    let (idle, busy) = (
        Cgroup::make(groups.mode, &bases, 1).unwrap(),
        Cgroup::make(groups.mode, &bases, 2).unwrap(),
    );
    let clear = || {
        groups
            .directories()
            .iter()
            .for_each(|base| sweep::clear_stale(base))
    };

    clear();
    assert!(idle.memory.exists() && idle.pids.exists());
    let mut orphan = start_in(&busy, "sleep");
    while busy.read().tasks_now == 0 {
        thread::yield_now();
    }

    server.kill().unwrap();
    server.wait().unwrap();
    clear();
    assert!(!idle.memory.exists() && !idle.pids.exists());
    assert_eq!(
        orphan.wait().unwrap().signal(),
        Some(9),
        "what ran in a dead server's group is killed"
    );
    clear();
    assert!(!busy.memory.exists() && !busy.pids.exists());
}

#[test]
fn a_sweep_kills_what_is_left_and_leaves_nothing() {
    let Some(groups) = cgroups_or_skip() else {
        return;
    };
    // A live process as the owner, so that no other test's `find` clears it first.
    let mut server = Command::new("sleep").arg("60").spawn().unwrap();
    let bases = groups.bases_of(&Owner::of_process(server.id()).unwrap());
    let made: Vec<_> = (0..3)
        .map(|slot| Cgroup::make(groups.mode, &bases, slot).unwrap())
        .collect();
    let mut orphans: Vec<_> = made.iter().map(|group| start_in(group, "sleep")).collect();
    while made.iter().any(|group| group.read().tasks_now == 0) {
        thread::yield_now();
    }

    let other = Cgroups {
        mode: groups.mode,
        reason: String::new(),
        bases,
        spawner: None,
    };
    sweep(&other.directories());

    for (group, orphan) in made.iter().zip(&mut orphans) {
        assert_eq!(orphan.wait().unwrap().signal(), Some(9));
        assert!(
            group
                .directories()
                .iter()
                .all(|directory| !directory.exists())
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

/// The program in the cgroups: what to do comes in a variable. Ignored, as it is no test.
#[test]
#[ignore = "started by the other tests"]
fn program() {
    let Ok(what) = env::var("HOTCELL_TEST_PROGRAM") else {
        return;
    };
    let (verb, number) = what.split_once(' ').unwrap_or((&what, "0"));
    let number: u64 = number.parse().unwrap();
    match verb {
        "memory" => drop(hint::black_box(vec![1_u8; (number * MIB) as usize])),
        "threads" => {
            for _ in 0..number {
                let forever = || thread::sleep(Duration::from_secs(60));
                if let Err(error) = thread::Builder::new().spawn(forever) {
                    process::exit(error.raw_os_error().unwrap_or(1));
                }
            }
        }
        "burn" => {
            let clock = || rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
            while Duration::try_from(clock()).unwrap() < Duration::from_millis(number) {}
        }
        _ => thread::sleep(Duration::from_secs(60)),
    }
    process::exit(0);
}

/// One for all tests: a server, too, looks for its place once.
fn cgroups_or_skip() -> Option<&'static Cgroups> {
    static FOUND: LazyLock<Cgroups> = LazyLock::new(Cgroups::find);
    if FOUND.mode() == Mode::None {
        skip(FOUND.reason());
        return None;
    }
    Some(&FOUND)
}

/// Says why a test did nothing. Where the host is known to have cgroups, that is a failure.
fn skip(reason: &str) {
    println!("SKIP: {reason}");
    assert!(env::var_os("HOTCELL_NO_SKIP").is_none(), "{reason}");
}

/// Each test has a slot of its own: they run side by side in one process.
fn group_or_skip(slot: u32) -> Option<Cgroup> {
    cgroups_or_skip().map(|groups| groups.group(slot).unwrap())
}

fn run_in(group: &Cgroup, what: &str) -> ExitStatus {
    start_in(group, what).wait().unwrap()
}

/// Starts [`program`] in the group: a shell joins through its first descriptors.
fn start_in(group: &Cgroup, what: &str) -> Child {
    let mut ways = group
        .join_files()
        .into_iter()
        .map(|way| Stdio::from(way.try_clone_to_owned().unwrap()));
    let count = group.join_files().len();
    let mut next = || ways.next().unwrap_or_else(Stdio::null);
    let join: String = (0..count)
        .map(|way| format!("echo 0 >&{way} && "))
        .collect();
    let script = format!("{join} exec \"$0\" \"$@\" </dev/null >/dev/null 2>&1");
    Command::new("sh")
        .args(["-c", &script])
        .arg(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "cgroup::tests::program"])
        .env("HOTCELL_TEST_PROGRAM", what)
        .stdin(next())
        .stdout(next())
        .stderr(next())
        .spawn()
        .unwrap()
}

impl Cgroups {
    /// The bases that another server would have made here.
    fn bases_of(&self, owner: &Owner) -> Bases {
        let beside = |base: &PathBuf| base.with_file_name(owner.name());
        let bases = Bases {
            memory: beside(&self.bases.memory),
            pids: beside(&self.bases.pids),
            cpu: self.bases.cpu.as_ref().map(beside),
        };
        if self.mode == Mode::V2 {
            fs::create_dir(&bases.memory).unwrap();
            write(&bases.memory, "cgroup.subtree_control", "+memory +pids").unwrap();
            if bases.cpu.is_some() {
                write(&bases.memory, "cgroup.subtree_control", "+cpu").unwrap();
            }
        }
        bases
    }
}
