//! `hotcell repl` at a real terminal, and fed by a pipe.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use crate::support::{Answer, Hotcell, PATIENCE, Running, anyone, everyone, has};

pub const INTERRUPT: &str = "\x03";
const END: &str = "\x04";

/// A terminal with `hotcell` in it.
pub struct Terminal {
    pub child: Child,
    pub keys: File,
    /// Before anything ran in it.
    pub modes: LocalModes,
    shown: Receiver<Vec<u8>>,
    /// All that was on the screen, escapes and all.
    pub screen: String,
    /// How much of it has been waited for.
    seen: usize,
}

impl Terminal {
    fn open(hotcell: &Hotcell, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start(hotcell, &[&["repl"], arguments].concat(), variables)
    }

    pub fn start(hotcell: &Hotcell, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&pty).expect("it is ours");
        unlockpt(&pty).expect("it can be opened");
        let name = ptsname(&pty, Vec::new()).expect("a name");
        let side = || {
            let open = File::options()
                .read(true)
                .write(true)
                .open(name.to_str().expect("text"));
            Stdio::from(open.expect("the other side"))
        };
        let modes = tcgetattr(&pty).expect("modes").local_modes;
        // Its own session, whose terminal this is: Ctrl-C goes to the one in the foreground.
        let mut command = Command::new("/usr/bin/setsid");
        hotcell.dress(&mut command);
        command
            .args(["--ctty", "--wait"])
            .arg(hotcell.binary())
            .args(words)
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(side())
            .stdout(side())
            .stderr(side());
        let child = command.spawn().expect("it starts");
        drop(command);
        let keys = File::from(pty);
        let mut screen = keys.try_clone().expect("a copy");
        let (pieces, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut buffer) {
                if pieces.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            modes,
            shown,
            screen: String::new(),
            seen: 0,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it is read");
    }

    /// Waits until a text is on the screen after all that was waited for.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.screen[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(piece) => self.screen += &String::from_utf8_lossy(&piece),
                Err(_) => panic!("no {text:?} in {:?}", &self.screen[self.seen..]),
            }
        }
    }

    /// Waits for the next prompt. It is drawn again while a line is typed, but the editor begins once.
    fn prompt(&mut self) {
        self.wait_for("\x1b[?2004h");
        self.wait_for(">>> ");
    }

    /// Types a line at the next prompt.
    fn enter(&mut self, line: &str) {
        self.prompt();
        self.press(&format!("{line}\r"));
    }

    fn end(mut self) -> Option<i32> {
        self.prompt();
        self.press(END);
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn piped(hotcell: &Hotcell, arguments: &[&str], input: &str) -> Answer {
    let mut command = hotcell.command();
    command.arg("repl").args(arguments).stdin(Stdio::piped());
    Running::start(&mut command).finish_with(input.as_bytes())
}

#[test]
fn a_person_gets_values_goes_on_after_open_lines_and_stops_what_runs() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let mut terminal = Terminal::open(&hotcell, &["python"], &[]);
        terminal.enter("x = 20 + 1");
        terminal.enter("{'a': x, 'b': True}");
        terminal.wait_for("{'a': 21, 'b': True}\r\n");
        terminal.enter("for i in range(2):");
        terminal.press("    print('line', i)\r\r");
        terminal.wait_for("line 0\r\nline 1\r\n");
        terminal.enter("f(");
        terminal.press("1)\r");
        terminal.wait_for("NameError: name 'f' is not defined");
        terminal.enter("exec(\"print('o' + 'n', flush=True)\\nwhile True: pass\")");
        terminal.wait_for("on\r\n");
        terminal.press(INTERRUPT);
        terminal.wait_for("KeyboardInterrupt");
        terminal.wait_for("the session keeps what it has");
        terminal.enter("print('kept', x)");
        terminal.wait_for("kept 21\r\n");
        // Ctrl-C at the prompt leaves the line, and nothing else.
        terminal.prompt();
        terminal.press(&format!("print('never'{INTERRUPT}"));
        terminal.enter("print('still', x)");
        terminal.wait_for("still 21\r\n");
        assert_eq!(terminal.end(), Some(0), "{}", hotcell.name);

        let history = hotcell
            .home()
            .join(".local/state/hotcell/repl-python.jsonl");
        let text = fs::read_to_string(&history).expect("a history");
        assert!(text.starts_with("\"x = 20 + 1\"\n"), "{text}");
        assert!(
            text.contains("for i in range(2):\\n    print('line', i)"),
            "{text}"
        );
        let mode = fs::metadata(&history).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // The line before is there again, in a session that knows nothing.
        let mut terminal = Terminal::open(&hotcell, &["python"], &[]);
        terminal.prompt();
        terminal.press("\x1b[A\r");
        terminal.wait_for("NameError: name 'x' is not defined");
        assert_eq!(terminal.end(), Some(0));
    }
}

#[test]
fn names_of_the_session_are_completed() {
    let Some(hotcell) = anyone() else {
        return;
    };
    for (language, program, first, keys, made) in [
        (
            "python",
            "python3",
            "longword = 'com' + 'pleted'",
            "longw\t\r",
            "'completed'",
        ),
        ("python", "python3", "import math", "math.fact\t5)\r", "120"),
        (
            "javascript",
            "node",
            "const longword = 'com' + 'pleted'",
            "longw\t\r",
            "'completed'",
        ),
        (
            "javascript",
            "node",
            "1",
            "JSON.stringi\t([1, 20])\r",
            "'[1,20]'",
        ),
        (
            "typescript",
            "sh",
            "const longword: string = 'com' + 'pleted'",
            "longw\t\r",
            "'completed'",
        ),
        (
            "ruby",
            "ruby",
            "longword = 'com' + 'pleted'",
            "longw\t\r",
            "\"completed\"",
        ),
        (
            "bash",
            "bash",
            "longword() { echo com''pleted; }",
            "longw\t\r",
            "completed\r\n",
        ),
    ] {
        if !has(program) {
            continue;
        }
        let mut terminal = Terminal::open(&hotcell, &[language], &[]);
        terminal.enter(first);
        terminal.prompt();
        terminal.press(keys);
        terminal.wait_for(made);
        assert_eq!(terminal.end(), Some(0), "{language}");
    }
}

#[test]
fn what_a_session_says_of_its_names_cannot_write_to_the_terminal() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    let mut terminal = Terminal::open(&hotcell, &["python"], &[]);
    terminal.enter("globals()['evil\\x1b]0;owned\\x07'] = globals()['evilplain'] = 'r' + 'eached'");
    terminal.prompt();
    terminal.press("evil\t\r");
    terminal.wait_for("'reached'");
    assert!(
        !terminal.screen.contains("\x1b]0;owned"),
        "{:?}",
        terminal.screen
    );
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn pictures_are_saved_and_shown_where_the_terminal_can() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    hotcell.write("home/p.py", super::display::MAKES_PNG);
    let kitty = "\x1b_Ga=T,f=100,m=0;iVBORw0KGgo";
    let sixel = "\x1bPq\"1;1;3;2#0;2;0;0;0";
    for (variables, picture) in [
        (&[][..], None),
        (&[("KITTY_WINDOW_ID", "1")], Some(kitty)),
        (&[("TERM", "foot")], Some(sixel)),
    ] {
        let mut terminal = Terminal::open(&hotcell, &["python", "--file", "p.py"], variables);
        terminal.enter("from p import *");
        terminal.enter("display(Picture(3, 2))");
        terminal.wait_for("image/png in ");
        terminal.wait_for("/1.png");
        terminal.enter("'after'");
        terminal.wait_for("'after'\r\n");
        for known in [kitty, sixel] {
            let is_shown = terminal.screen.contains(known);
            assert_eq!(is_shown, picture == Some(known), "{:?}", terminal.screen);
        }
        let screen = terminal.screen.clone();
        assert_eq!(terminal.end(), Some(0));
        let (_, rest) = screen.split_once("image/png in ").expect("a line");
        let path = rest.lines().next().expect("a path");
        let bytes = fs::read(path.trim()).expect("a file");
        assert!(bytes.starts_with(b"\x89PNG"));
    }
}

#[test]
fn without_a_terminal_pieces_are_read_from_a_pipe() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let text = "x = 2\nfor i in range(2):\n    print(i + x)\n\nx * 21\n1 / 0\nprint('on')";
        let answer = piped(&hotcell, &[], text);
        assert_eq!(answer.out(), "2\n3\n42\non\n", "{}", answer.err());
        assert!(answer.err().contains("ZeroDivisionError"));
        assert!(!answer.out().contains(">>>") && !answer.err().contains(">>>"));
        assert_eq!(answer.code, Some(0), "the last piece decides");
        assert_eq!(piped(&hotcell, &[], "1 / 0").code, Some(1));
        let answer = piped(&hotcell, &[], "print(1)\nexit()\nprint(2)");
        assert_eq!((answer.out().as_str(), answer.code), ("1\n", Some(0)));
    }
}

#[test]
fn what_runs_has_the_grants_of_a_run_and_no_others() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    hotcell.write("home/in.txt", "given");
    let text = "import os\nprint(os.environ.get('A'), os.path.exists('in.txt'))\nopen('in.txt', 'a').write('!')\nprint(open('in.txt').read())\n";
    let answer = piped(&hotcell, &["--env", "A=b", "--file", "in.txt"], text);
    assert_eq!(answer.out(), "b True\n1\ngiven!\n", "{}", answer.err());
    let answer = piped(
        &hotcell,
        &[],
        "import os\nprint(os.environ.get('A'), os.listdir('.'))",
    );
    assert!(answer.out().starts_with("None ["), "{}", answer.out());
    assert!(!answer.out().contains("in.txt"));
    let answer = piped(
        &hotcell,
        &["--memory", "100m"],
        "x = bytearray(1 << 28)\n'unreached'",
    );
    assert!(!answer.out().contains("268435456"), "{}", answer.out());
    let answer = piped(&hotcell, &["cobol"], "x");
    assert_eq!(answer.code, Some(2), "{}", answer.err());
}
