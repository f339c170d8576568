//! Terminals: those that programs open in a sandbox, and ours while it is the program's.

use std::process::Command;

use rustix::termios::{LocalModes, Winsize, tcgetattr, tcgetwinsize, tcsetwinsize};

use crate::repl::{INTERRUPT, Terminal};
use crate::support::{everyone, has};

/// Opens a terminal, runs a command at it, and says what is different about the terminal itself.
const OWN: &str = r#"
import os, pty, subprocess
ours, theirs = pty.openpty()
print(os.ttyname(theirs), os.isatty(theirs))
done = subprocess.run(["sh", "-c", "tty; test -t 1 && echo at a terminal"], stdin=theirs, stdout=theirs)
said = b""
while not said.endswith(b"terminal\r\n"): said += os.read(ours, 1000)
print(said)
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "echo mine > /dev/tty"])
print(os.read(fd, 1000))
"#;

#[test]
fn programs_open_terminals_of_their_own() {
    for hotcell in everyone() {
        let answer = hotcell.run(&["-l", "python", "-c", OWN]);
        let shown = "/dev/pts/0 True\nb'/dev/pts/0\\r\\nat a terminal\\r\\n'\nb'mine\\r\\n'\n";
        assert_eq!(answer.whole(), (Some(0), shown.to_owned(), String::new()));
        if has("script") {
            let code = "script -qec 'test -t 0 && echo yes' /dev/null";
            let answer = hotcell.run_with(b"", &["-l", "sh", "-c", code]);
            assert_eq!(answer.out(), "yes\r\n", "{}", answer.err());
        }
        if has("expect") {
            let code = "expect -c 'spawn -noecho sh -c \"read x; echo got \\$x\"; send \"it\\r\"; expect \"got it\"; exit 3'";
            assert_eq!(hotcell.run(&["-l", "sh", "-c", code]).code, Some(3));
        }
    }
}

#[test]
fn programs_of_a_server_open_terminals_too() {
    let mut client = crate::raw::Stdio::open(&[]);
    let code = "import os, pty\nours, theirs = pty.openpty()\nos.write(theirs, b'x')\nprint(os.ttyname(theirs), os.read(ours, 1))";
    // The first in a sandbox that is made for it, later ones in such that waited.
    for _ in 0..3 {
        let arguments = serde_json::json!({ "code": code, "language": "python" });
        let result = client.call("run", arguments);
        let said = &result["structuredContent"]["stdout"];
        assert_eq!(*said, "/dev/pts/0 b'x'\n", "{result:#}");
    }
}

/// What a program tries with a terminal that it has, and with those that it has not.
const HOSTILE: &str = r#"
import fcntl, os, pty, termios
def attempt(what, *call):
    try: call[0](*call[1:])
    except OSError as error: print(what, error.errno)
    else: print(what, "done")
ours, theirs = pty.openpty()
attempt("inject", fcntl.ioctl, theirs, termios.TIOCSTI, b"x")
attempt("discipline", fcntl.ioctl, theirs, termios.TIOCSETD, b"\x03\0\0\0")
attempt("console", fcntl.ioctl, theirs, termios.TIOCCONS)
attempt("controlling", os.open, "/dev/tty", os.O_RDWR)
print(sorted(os.listdir("/dev/pts")), os.path.exists("/dev/console"), os.path.exists("/dev/tty0"))
held = []
try:
    while True: held.append(os.openpty())
except OSError as error:
    print(len(held) < 64, error.errno)
"#;

#[test]
fn a_terminal_of_a_sandbox_is_no_way_out() {
    for hotcell in everyone() {
        // Outside there are terminals, and this is the name of one.
        let ours = Terminal::start(&hotcell, &["repl", "python"], &[]);
        let before = tcgetwinsize(&ours.keys).expect("a size");
        let answer = hotcell.run(&["-l", "python", "-c", HOSTILE]);
        let (eperm, enxio, enospc) = (1, 6, 28);
        let expected = format!(
            "inject {eperm}\ndiscipline {eperm}\nconsole {eperm}\ncontrolling {enxio}\n['0', 'ptmx'] False False\nTrue {enospc}\n"
        );
        assert_eq!(answer.out(), expected, "{}", answer.err());
        // The witness: what was taken was the sandbox's own, and is back with its end.
        assert_eq!(tcgetwinsize(&ours.keys).expect("a size"), before);
        let again = hotcell.run(&["-l", "python", "-c", HOSTILE]);
        assert_eq!(again.out(), expected);
    }
}

/// Says what it is at; then what its size is each time that changes; ends at `q`.
const SCREEN: &str = r#"
import os, signal, sys
print([os.isatty(n) for n in (0, 1, 2)], flush=True)
print(os.ttyname(0), os.environ.get("TERM"), flush=True)
signal.signal(signal.SIGWINCH, lambda *_: print("now", *os.get_terminal_size(), flush=True))
print("size", *os.get_terminal_size(), flush=True)
while True:
    line = sys.stdin.readline().strip()
    print(f"<{line}>", flush=True)
    if line == "q": break
"#;

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

#[test]
fn a_program_at_a_terminal_is_at_one_of_its_size() {
    for hotcell in everyone() {
        let file = hotcell.write("home/screen.py", SCREEN);
        let mut terminal = Terminal::start(&hotcell, &[file.to_str().expect("text")], &[]);
        terminal.wait_for("[True, True, True]\r\n/dev/pts/0 xterm\r\n");
        terminal.wait_for("size ");
        tcsetwinsize(&terminal.keys, size(33, 99)).expect("a size");
        terminal.wait_for("now 99 33\r\n");
        // What is typed is shown once: by the program's terminal, not by ours too.
        terminal.press("hello\r");
        terminal.wait_for("hello\r\n<hello>\r\n");
        assert_eq!(terminal.screen.matches("hello").count(), 2);
        terminal.press("q\r");
        terminal.wait_for("<q>");
        assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));

        // The control: pipes, if that is wished.
        let words = ["run", "--no-tty", file.to_str().expect("text")];
        let mut terminal = Terminal::start(&hotcell, &words, &[]);
        terminal.wait_for("[False, False, False]");
    }
}

/// The modes of a terminal after a program that has changed its own.
#[test]
fn the_terminal_is_as_it_was_however_a_program_ends() {
    for hotcell in everyone() {
        let wild = "import os, signal, sys, tty\ntty.setraw(0)\nprint('raw', flush=True)\n";
        for (rest, key, code) in [
            ("os.read(0, 1)", "x", 0),
            (
                "os.read(0, 1); os.kill(os.getpid(), signal.SIGKILL)",
                "x",
                137,
            ),
            ("os.read(0, 1); os.abort()", "x", 134),
        ] {
            let program = format!("{wild}{rest}");
            let words = ["run", "-l", "python", "-c", &program];
            let mut terminal = Terminal::start(&hotcell, &words, &[]);
            let before = terminal.modes;
            assert!(before.contains(LocalModes::ICANON));
            terminal.wait_for("raw");
            let meanwhile = tcgetattr(&terminal.keys).expect("modes").local_modes;
            assert!(!meanwhile.contains(LocalModes::ICANON));
            terminal.press(key);
            assert_eq!(terminal.child.wait().expect("it ends").code(), Some(code));
            let after = tcgetattr(&terminal.keys).expect("modes").local_modes;
            assert_eq!(after, before);
        }
    }
}

#[test]
fn ctrl_c_is_the_programs_first_and_ends_it_the_second_time() {
    for hotcell in everyone() {
        let stubborn = "import signal, time\nsignal.signal(signal.SIGINT, lambda *_: print('heard', flush=True))\n\
                        print('up', flush=True)\nwhile True: time.sleep(1)";
        let words = ["run", "-l", "python", "-c", stubborn];
        let mut terminal = Terminal::start(&hotcell, &words, &[]);
        terminal.wait_for("up");
        terminal.press(INTERRUPT);
        terminal.wait_for("heard");
        // Something else between starts the count again.
        terminal.press(&format!("x{INTERRUPT}"));
        terminal.wait_for("heard");
        terminal.press(INTERRUPT);
        terminal.wait_for("the run was cancelled");
        assert_eq!(terminal.child.wait().expect("it ends").code(), Some(130));

        let usual = "import time\nprint('up', flush=True)\ntime.sleep(60)";
        for more in [&[][..], &["--no-tty"]] {
            let words = [&["run"], more, &["-l", "python", "-c", usual]].concat();
            let mut terminal = Terminal::start(&hotcell, &words, &[]);
            terminal.wait_for("up");
            terminal.press(INTERRUPT);
            terminal.wait_for("KeyboardInterrupt");
            assert_eq!(terminal.child.wait().expect("it ends").code(), Some(130));
        }

        // A program that reads the key itself is not ended by it.
        let reads = "import os, tty\ntty.setraw(0)\nprint('raw', flush=True)\n\
                     got = b''\nwhile len(got) < 3: got += os.read(0, 1)\nprint(got)";
        let words = ["run", "-l", "python", "-c", reads];
        let mut terminal = Terminal::start(&hotcell, &words, &[]);
        terminal.wait_for("raw");
        terminal.press(&INTERRUPT.repeat(3));
        terminal.wait_for("b'\\x03\\x03\\x03'");
        assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn all_that_was_printed_at_a_terminal_is_seen() {
    for hotcell in everyone() {
        // More than the kernel keeps, the end of it just before the program's own.
        let code = "print('\\n'.join(str(n) for n in range(20000)))\nprint('last')";
        let words = ["run", "-l", "python", "-c", code];
        for _ in 0..3 {
            let mut terminal = Terminal::start(&hotcell, &words, &[]);
            terminal.wait_for("last\r\n");
            assert!(terminal.screen.contains("\r\n9999\r\n10000\r\n"));
            assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
        }
    }
}

#[test]
fn a_reader_that_goes_ends_a_run_without_a_word() {
    for hotcell in everyone() {
        let mut command = Command::new("/bin/bash");
        hotcell.dress(&mut command);
        let script = format!(
            "set -o pipefail; {} run -l sh -c 'while :; do echo y; done' | head -n 2; echo ended with $?",
            hotcell.binary().display()
        );
        let output = command.args(["-c", &script]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "y\ny\nended with 141\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
