//! A server whose spawner dies loses the runs in flight and nothing else: the next one
//! works, as root and as an ordinary user.
//!
//! This is a program of its own and not a module of `it`, because only something that
//! runs twice in one process can show it, and the jail starts that process's own binary
//! again: its `main` must begin with the jail's hook, which a test harness's does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hotcell::cell::Requirement;
use hotcell::engine::Engine;
use hotcell::language::Surroundings;
use hotcell::plan::RunPlan;
use hotcell::request::RunRequest;
use hotcell::run::{Outcome, StartError, Stdin, Surface};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;

/// Says to a copy of us which part it plays.
const SERVER: &str = "serve";
/// Makes a failure of what would be skipped.
const NO_SKIP: &str = "HOTCELL_NO_SKIP";

fn main() {
    jail::hook();
    if std::env::args().nth(1).as_deref() == Some(SERVER) {
        return serve();
    }
    // A harness would list its tests; there is one.
    println!("a_server_outlives_its_spawner");
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("server");
    let own = std::env::current_exe().expect("our own path");
    fs::copy(own, &binary).expect("a copy that every user may run");
    for path in [folder.path(), &binary] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let mut users = vec![rustix::process::getuid().as_raw()];
    if users[0] == 0 {
        users.push(100_000 + std::process::id());
    }
    for uid in users {
        let mut server = Command::new(&binary);
        let strictness = std::env::var_os(NO_SKIP).unwrap_or_default();
        server.arg(SERVER).env_clear().env("PATH", "/usr/bin:/bin");
        server.env(NO_SKIP, strictness);
        if uid != rustix::process::getuid().as_raw() {
            server.uid(uid).gid(uid);
        }
        let ended = server.status().expect("it can be started");
        assert!(ended.success(), "as uid {uid}: {ended}");
    }
}

fn serve() {
    let engine = Engine::new(Surroundings::from_env());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        if let Err(error) = run(&engine, "exit 0").await {
            let allowed = std::env::var_os(NO_SKIP).is_none_or(|value| value != "1");
            assert!(allowed, "no cell here: {error}");
            return println!("SKIP no cell here: {error}");
        }
        for round in 0..5 {
            // Three in flight are lost together.
            let last = spawner().expect("a spawner");
            let (first, second, third, ()) = tokio::join!(
                run(&engine, "sleep 600"),
                run(&engine, "while :; do :; done"),
                run(&engine, "while :; do echo y; done"),
                kill_when_busy(last),
            );
            for lost in [first, second, third] {
                assert_eq!(
                    lost.expect("they had begun"),
                    Outcome::Lost,
                    "round {round}"
                );
            }
            let fine = run(&engine, "exit 3").await.expect("another spawner");
            assert!(matches!(fine, Outcome::Exited { code: 3, .. }), "{fine:?}");
            let next = spawner().expect("another spawner");
            assert_ne!(next, last, "round {round}");

            // One that dies while nothing runs is not even missed.
            kill(next);
            while alive(next) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let fine = run(&engine, "exit 4").await.expect("a third spawner");
            assert!(matches!(fine, Outcome::Exited { code: 4, .. }), "{fine:?}");
        }
    });
    println!("as uid {}: ok", rustix::process::getuid().as_raw());
}

async fn run(engine: &Engine, code: &str) -> Result<Outcome, StartError> {
    let request = RunRequest::new(code).expect("code").language("sh");
    let plan: RunPlan = engine.plan(request).expect("a plan");
    let surface = Surface {
        stdin: Stdin::Empty,
        // Nobody listens, so a flood meets no slow reader.
        events: mpsc::channel(1).0,
        requirement: Requirement::Confined,
    };
    let ended = engine.run(&plan, surface, std::future::pending()).await?;
    Ok(ended.outcome)
}

/// Kills the spawner once three programs are at work.
async fn kill_when_busy(spawner: u32) {
    let end = Instant::now() + Duration::from_secs(30);
    while programs() < 3 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kill(spawner);
}

/// How many of our cells run their program: a shell, and not our own binary any more.
fn programs() -> usize {
    let inits = children().filter(|pid| !sees_the_host(*pid));
    let shells = |init: &u32| {
        let list = format!("/proc/{init}/task/{init}/children");
        let list = fs::read_to_string(list).unwrap_or_default();
        list.split_ascii_whitespace().any(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(4).any(|name| name == b"bash")
        })
    };
    inits.filter(shells).count()
}

/// Our child that sees the host's processes from a user namespace of its own.
fn spawner() -> Option<u32> {
    let own = fs::read_link("/proc/self/ns/user").ok();
    let apart = |pid: &u32| fs::read_link(format!("/proc/{pid}/ns/user")).ok() != own;
    children().filter(|pid| sees_the_host(*pid)).find(apart)
}

fn sees_the_host(pid: u32) -> bool {
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    of(&pid.to_string()) == of("self")
}

fn children() -> impl Iterator<Item = u32> {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let lists: Vec<String> = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .collect();
    let pids = lists
        .iter()
        .flat_map(|list| list.split_ascii_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| alive(*pid));
    pids.collect::<Vec<u32>>().into_iter()
}

fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a pid is not 0");
    let _ = kill_process(pid, Signal::KILL);
}
