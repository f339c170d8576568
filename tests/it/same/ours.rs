//! Running a program in hotcell: over MCP, many in flight on one server, and by `hotcell run`.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::Answer;
use super::program::Program;
use crate::raw;
use crate::support::{Hotcell, Running, open_to_all};

/// Calls in flight: enough to keep two processors busy, few enough to stay inside time limits.
const IN_FLIGHT: usize = 4;
/// Time for a runtime to start and wait for the next program: one that finds none waiting would
/// get a new one, and be compared with nothing.
const PACE: Duration = Duration::from_millis(100);

/// Runs all of them on one server, in order.
pub fn over_mcp(hotcell: &Hotcell, options: &[&str], programs: &[Program]) -> Vec<Answer> {
    let mut client = raw::Stdio::start_as(&[], |command, _| {
        *command = served(hotcell, options);
    });
    client.initialize("2025-11-25");
    // A runtime that makes cells of itself is never short of them; others are.
    let starts_anew = |program: &Program| {
        !options.is_empty() || hotcell.isolation.is_some() || program.extension() != "py"
    };
    let in_flight = match programs.first().is_some_and(starts_anew) {
        true => 1,
        false => IN_FLIGHT,
    };
    let mut answers = Vec::new();
    let mut waiting = std::collections::VecDeque::new();
    let mut programs = programs.iter();
    loop {
        while waiting.len() < in_flight {
            let Some(program) = programs.next() else {
                break;
            };
            waiting.push_back(client.begin_call("run", arguments(program)));
        }
        let Some(id) = waiting.pop_front() else {
            return answers;
        };
        let answer = client.answer(&id);
        if in_flight == 1 {
            thread::sleep(PACE);
        }
        answers.push(of_output(&raw::record(&answer["result"])));
    }
}

/// Runs it in a process and a cell of its own.
pub fn cold(hotcell: &Hotcell, program: &Program) -> Answer {
    let folder = tempfile::tempdir_in(hotcell.place("")).expect("a folder");
    open_to_all(folder.path());
    program.place(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let mut command = hotcell.command();
    command.args(["run", "--json"]);
    for name in program.files.keys() {
        command.args(["--file".to_owned(), format!("{}:{name}", at(name))]);
    }
    command
        .arg(at(&program.file()))
        .arg("--")
        .args(&program.args);
    let answer = match &program.stdin {
        None => Running::start(command.stdin(Stdio::null())).finish(),
        Some(text) => Running::start(command.stdin(Stdio::piped())).finish_with(text.as_bytes()),
    };
    of_output(&answer.json())
}

fn served(hotcell: &Hotcell, options: &[&str]) -> std::process::Command {
    let mut command = hotcell.command();
    command.arg("serve").args(options);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn arguments(program: &Program) -> Value {
    let mut arguments = json!({
        "code": program.code,
        "language": program.extension(),
        "args": program.args,
        "files": program.files,
    });
    if let Some(stdin) = &program.stdin {
        arguments["stdin"] = stdin.as_str().into();
    }
    arguments
}

pub fn of_output(output: &Value) -> Answer {
    let text = |key: &str| output[key].as_str().unwrap_or_default().to_owned();
    let ran = ["ok", "failed", "killed"]
        .iter()
        .any(|status| output["status"] == *status);
    Answer {
        code: output["exit_code"].as_i64().filter(|_| ran),
        signal: output["signal"].as_str().map(str::to_owned),
        stdout: text("stdout"),
        // What was no end of the program's own must be seen.
        stderr: if ran {
            text("stderr")
        } else {
            output.to_string()
        },
    }
}

/// The kernel's name of a signal that programs here end by.
pub fn signal_name(signal: i32) -> String {
    let named = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let found = named.iter().find(|(number, _)| *number == signal);
    found.map_or_else(
        || format!("signal {signal}"),
        |(_, name)| (*name).to_owned(),
    )
}
