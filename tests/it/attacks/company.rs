//! What happens beside a hostile run: a neighbour that must not suffer, a process of
//! the same user that must live, a caller from the host that must not get in.

use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::answer::Answer;
use super::case::Case;
use super::pass::{Pass, Run};

/// Runs a case together with what has to happen beside it: a neighbour that must not
/// suffer, or a caller from the host.
pub fn accompanied(pass: &Pass, case: &Case, run: &Run) -> (Answer, Vec<String>) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let beside = match case.short() {
            "NET-16" => Some(scope.spawn(|| call_in(&ended))),
            "PRC-03" => Some(scope.spawn(|| neighbour(pass))),
            _ if case.category == "resource-exhaustion" => Some(scope.spawn(|| neighbour(pass))),
            _ => None,
        };
        let answer = pass.run(run);
        ended.store(true, Ordering::SeqCst);
        let failed = beside.and_then(|beside| beside.join().expect("a companion does not panic"));
        (answer, failed.into_iter().collect())
    })
}

/// A second run that starts when the first is at its worst.
fn neighbour(pass: &Pass) -> Option<String> {
    thread::sleep(Duration::from_millis(500));
    let answer = hello(pass);
    let fine = answer
        .json()
        .is_some_and(|result| result["stdout"] == "42\n");
    (!fine).then(|| {
        format!(
            "a run beside it took {:?}: {}",
            answer.elapsed,
            answer.shown()
        )
    })
}

/// Knocks at the port that NET-16 listens on inside, until the run is over.
fn call_in(ended: &AtomicBool) -> Option<String> {
    while !ended.load(Ordering::SeqCst) {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, 18080)).is_ok() {
            return Some("the host reached a port inside".to_owned());
        }
        thread::sleep(Duration::from_millis(50));
    }
    None
}

pub fn hello(pass: &Pass) -> Answer {
    let code = "print(6 * 7)\n".to_owned();
    pass.run(&Run {
        language: "python",
        code,
        wall: Duration::from_secs(10),
        files: Vec::new(),
    })
}

/// The marks by which the witness should know a run that lives, and does not.
pub fn unseen(pass: &Pass, walls: &Value) -> Vec<&'static str> {
    let code = "import time\ntime.sleep(1)\n".to_owned();
    let answer = pass.run(&Run {
        language: "python",
        code,
        wall: Duration::from_secs(10),
        files: Vec::new(),
    });
    let groups = walls
        .as_array()
        .into_iter()
        .flatten()
        .any(|wall| wall["name"] == "control groups" && wall["stands"] == true);
    let mut marks = vec!["binary"];
    // What waited for its program has the environment of all that wait.
    // The processes of gVisor's kernel are not the program's, and have no environment.
    let has_environment = pass.way.is_command() && pass.way.isolation() != Some("gvisor");
    marks.extend(has_environment.then_some("environment"));
    // Those of containers are their engine's.
    let groups = groups && pass.way.isolation().is_none();
    marks.extend(groups.then_some("control group"));
    marks.retain(|mark| !answer.traces.known.contains(mark));
    marks.extend(answer.traces.cells.is_empty().then_some("cells"));
    marks
}

/// A process of the pass's user that no cell may touch.
pub fn bystander(pass: &Pass) -> Child {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).current_dir("/");
    if pass.uid != rustix::process::getuid().as_raw() {
        command.uid(pass.uid).gid(pass.uid);
    }
    command.spawn().expect("sleep can be started")
}
