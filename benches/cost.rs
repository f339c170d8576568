//! What the sandbox costs, as ratios of medians that were measured in turns.
//!
//! `scripts/bench` runs this. A noisy machine moves all figures of one round alike,
//! so read the ratios and not the milliseconds.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jail::spec::Start;
use jail::{Event, Host, Jail, Limits, Policy, View, WorkerWalls};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

const PYTHON: &str = "/usr/bin/python3";
const BARE: [&str; 5] = [PYTHON, "-I", "-S", "-c", "print(1)"];

fn main() {
    jail::hook();
    // `cargo bench` passes `--bench`; a number is how many rounds to take.
    let rounds = std::env::args()
        .find_map(|word| word.parse().ok())
        .unwrap_or(200);
    let hotcell = env!("CARGO_BIN_EXE_hotcell");
    let jail = Jail::new(Arc::new(Host::open().expect("a host")), View::default());
    let plain = [PYTHON, "-c", "print(1)"];
    let whole = [hotcell, "run", "-l", "python", "-c", "print(1)"];

    let mut times: [Vec<Duration>; 6] = Default::default();
    for _ in 0..rounds {
        for (times, work) in times.iter_mut().zip([
            &(|| command(&["/bin/true"], "")) as &dyn Fn(),
            &|| command(&BARE, "1\n"),
            &|| cell(&jail, &BARE, "1\n"),
            &|| cell(&jail, &["/bin/true"], ""),
            &|| command(&plain, "1\n"),
            &|| command(&whole, "1\n"),
        ]) {
            let start = Instant::now();
            work();
            times.push(start.elapsed());
        }
    }
    let [unjailed_true, bare, jailed, jailed_true, plain, whole] = times.map(median);
    println!("medians of {rounds} rounds, interleaved");
    row("true, plain", unjailed_true, None);
    row(
        "true, in a cold cell",
        jailed_true,
        Some((unjailed_true, "true")),
    );
    row("python3 -I -S, plain", bare, None);
    row(
        "python3 -I -S, in a cold cell",
        jailed,
        Some((bare, "python3 -I -S; goal 1.25")),
    );
    row("python3 -c 'print(1)'", plain, None);
    row(
        "hotcell run -l python -c 'print(1)'",
        whole,
        Some((plain, "python3 -c; goal 1.5")),
    );
    println!(
        "idle spawner: {} kB resident, {} kB of its own (goal 4096)",
        memory("Rss:"),
        memory("Private_Dirty:")
    );
}

fn row(name: &str, time: Duration, against: Option<(Duration, &str)>) {
    let ratio = against
        .map(|(other, what)| format!("  {:.2} x {what}", time.as_secs_f64() / other.as_secs_f64()));
    println!(
        "{name:<38} {:>8.2} ms{}",
        time.as_secs_f64() * 1e3,
        ratio.unwrap_or_default()
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn command(argv: &[&str], printed: &str) {
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        printed,
        "{output:?}"
    );
}

/// One program in a cold cell, from the request to its end and its output.
fn cell(jail: &Jail, argv: &[&str], printed: &str) {
    let policy = Policy {
        argv: argv.iter().map(Into::into).collect(),
        env: vec!["PATH=/usr/bin:/bin".into()],
        limits: Limits::default(),
        listen: None,
        terminal: None,
        prestarted: false,
        loaded: None,
    };
    let null: OwnedFd = File::open("/dev/null").expect("it is there").into();
    let (stdout, stdout_theirs) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let (_stderr, stderr_theirs) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let mut cell = jail
        .spawn(&policy, [null, stdout_theirs, stderr_theirs], None)
        .expect("a cell");
    loop {
        match cell.next_event().expect("an event") {
            None => {
                let status = cell.status().expect("a socket");
                poll(&mut [PollFd::new(&status, PollFlags::IN)], None).expect("a poll");
            }
            Some(Event::Ready { missing }) => {
                assert!(missing.is_empty(), "{missing:?}");
                let go = Start {
                    required: WorkerWalls {
                        landlock: 0,
                        seccomp: true,
                    },
                    cpu_seconds: policy.limits.cpu_seconds,
                    prelude: String::new(),
                };
                cell.start(&go).expect("it goes");
            }
            Some(Event::Locked { .. }) => {}
            Some(Event::Exited(exit)) => {
                assert_eq!(exit.status, 0);
                break;
            }
            Some(other) => panic!("{other:?}"),
        }
    }
    let mut text = String::new();
    File::from(stdout)
        .read_to_string(&mut text)
        .expect("its output");
    assert_eq!(text, printed);
}

/// A figure of our idle spawner's memory, in kB.
fn memory(name: &str) -> u64 {
    let own = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
    let all = std::fs::read_dir(format!("/proc/{own}/task")).expect("our threads");
    let lists = all
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: String = children
        .into_iter()
        .chain(lists)
        .collect::<Vec<_>>()
        .join(" ");
    let spawner = children.split_whitespace().find(|pid| {
        std::fs::read(Path::new("/proc").join(pid).join("cmdline"))
            .is_ok_and(|line| line.starts_with(b"hotcell-spawner"))
    });
    let Some(pid) = spawner else { return 0 };
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    rollup
        .lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}
