//! The controls: a detector that has never fired proves nothing. Each program that can
//! print `BREACH` runs here with nothing to hold it, as a throw-away user, and has to.
//! Where ordinary permissions refuse the attack anyway it runs in a weakened sandbox:
//! namespaces with all capabilities and neither filter nor masks, or with one
//! capability. `controls::table` says which case needs what.
//!
//! Resource exhaustion, PRC-03 and KRN-02 never run on the bare machine.

mod table;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::canary::{self, Canaries};
use super::case::{self, Case};
use super::pass::{open_to_all, unused_uid};
use super::scope::{self, Scope};
use super::witness::{self, MARK, Traces};
use super::{programs, say};
use crate::support::eventually;
use table::{CONTROLS, Control, HOST_DEPENDENT};

/// How long a control may take; NET-16 waits five seconds for its caller.
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn every_detector_fires_when_nothing_holds_the_program() {
    if !rustix::process::getuid().is_root() {
        let text = "SKIP controls: only root can become a throw-away user";
        assert!(std::env::var_os("HOTCELL_NO_SKIP").is_none(), "{text}");
        return say(text);
    }
    let canaries = Canaries::plant();
    let uid = unused_uid(65_000);
    let stage = Stage {
        uid,
        secret: canaries.secret.clone(),
    };
    let (mut fired, mut failed, mut quiet) = (0, Vec::new(), BTreeSet::new());
    for case in case::all() {
        let Some((_, control)) = CONTROLS.iter().find(|(id, _)| *id == case.short()) else {
            continue;
        };
        if let Control::Driver(reason) | Control::Never(reason) = control {
            quiet.insert(*reason);
            continue;
        }
        let excuse = HOST_DEPENDENT.iter().find(|(id, _)| *id == case.short());
        match (stage.play(&case, control), excuse) {
            (Ok(()), _) => fired += 1,
            (Err(_), Some((id, reason))) => say(&format!("quiet on this host: {id}: {reason}")),
            (Err(output), None) => failed.push(format!("{} stayed quiet: {output}", case.id)),
        }
    }
    let reached = canaries.contacts();
    for listener in ["tcp", "udp", "unix path", "unix abstract"] {
        if !reached.contains(&listener) {
            failed.push(format!(
                "the canary listener `{listener}` was never reached"
            ));
        }
    }
    say(&format!(
        "controls: {fired} detectors fired; the others: {quiet:?}"
    ));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_driven_program_has_a_control_or_a_reason() {
    let driven = case::all()
        .into_iter()
        .filter(|case| scope::of(case) == Some(Scope::Program));
    for case in driven {
        let count = CONTROLS
            .iter()
            .filter(|(id, _)| *id == case.short())
            .count();
        assert_eq!(count, 1, "{} is {count} times in the table", case.id);
    }
}

/// Where the controls are played: nothing around the program but its user.
struct Stage {
    uid: u32,
    secret: String,
}

impl Stage {
    /// Plays one control; the error is what the program printed instead.
    fn play(&self, case: &Case, control: &Control) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        chown(folder.path(), Some(self.uid), Some(self.uid)).expect("root can give it away");
        open_to_all(folder.path());
        let program = self.program(case, folder.path());
        let log = folder.path().join("output");
        let mark = canary::random();

        let mut command = wrapped(control, &program, self.uid);
        command.current_dir(folder.path()).env_clear();
        command.env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        command
            .env("HOME", folder.path())
            .env(canary::VARIABLE, &self.secret);
        command.env("SBX_STRICT", "1").env(MARK, &mark);
        fs::write(folder.path().join(".netrc"), &self.secret).expect("a file");
        let output = fs::File::create(&log).expect("a log");
        command
            .stdout(output.try_clone().expect("a second handle"))
            .stderr(output)
            .stdin(Stdio::piped());
        if !matches!(control, Control::Capability(_)) {
            command.uid(self.uid).gid(self.uid);
        }
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start: {error}"))?;
        let input = child.stdin.take();
        if let (Control::Fed(text), Some(mut input)) = (control, input) {
            let _ = input.write_all(text.as_bytes());
        }

        // PRC-02 never ends by itself; that it is still there is its sign.
        let limit = if matches!(control, Control::Survives) {
            LIMIT / 15
        } else {
            LIMIT
        };
        let end = Instant::now() + limit;
        while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
            if case.short() == "NET-16" {
                let _ = std::net::TcpStream::connect(("127.0.0.1", 18080));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let traces = Traces {
            server: u32::MAX,
            mark,
            ..Traces::default()
        };
        // One look can miss a process that forks and ends meanwhile.
        let survived = matches!(control, Control::Survives)
            && eventually(LIMIT, || !traces.survivors().is_empty());
        self.clear();
        let _ = child.wait();
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        let fired = match control {
            Control::Survives => survived,
            _ => text.lines().any(|line| line.starts_with("BREACH")),
        };
        if fired { Ok(()) } else { Err(text) }
    }

    /// The program as a command line.
    fn program(&self, case: &Case, folder: &Path) -> Vec<String> {
        let (interpreter, extension) = match case.language.as_str() {
            "c" => {
                return vec![
                    programs::compile(case, folder)
                        .expect("a C compiler")
                        .display()
                        .to_string(),
                ];
            }
            "bash" => ("bash", "sh"),
            "javascript" => ("node", "js"),
            _ => ("/usr/bin/python3", "py"),
        };
        let file = folder.join(format!("main.{extension}"));
        fs::write(&file, &case.code).expect("a program");
        vec![interpreter.to_owned(), file.display().to_string()]
    }

    /// Ends what the throw-away user runs: all of it was started here.
    fn clear(&self) {
        for pid in witness::processes_of(self.uid) {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The command that plays a control, with the walls it leaves out.
fn wrapped(control: &Control, program: &[String], uid: u32) -> Command {
    let in_namespaces = |extra: &[&str], script: &str| {
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "--uts",
                "--ipc",
                "--net",
            ])
            .args(extra);
        command.args(["sh", "-c", script, "sh"]).args(program);
        command
    };
    match control {
        // The shell stays, as the first process of the new pid namespace.
        Control::Weak(prepare) => {
            let script = format!("{prepare}\n\"$@\"; true");
            in_namespaces(&["--pid", "--fork", "--mount-proc"], &script)
        }
        Control::World => in_namespaces(
            &[],
            &format!("exec /usr/bin/python3 -c '{}' \"$@\"", table::WORLD),
        ),
        Control::Capability(name) => {
            let mut command = Command::new("setpriv");
            command
                .arg(format!("--reuid={uid}"))
                .arg(format!("--regid={uid}"))
                .arg("--clear-groups");
            command
                .arg(format!("--inh-caps=+{name}"))
                .arg(format!("--ambient-caps=+{name}"))
                .args(program);
            command
        }
        Control::Shell(line) => {
            let mut command = Command::new("sh");
            command.args(["-c", line, "sh"]).args(program);
            command
        }
        _ => {
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]);
            command
        }
    }
}
