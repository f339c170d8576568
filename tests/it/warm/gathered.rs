//! What a program prints in a pre-started interpreter, and in a new one: gathered, and never lost or out of order.

use std::process::Command;

use serde_json::{Value, json};

use crate::raw;
use crate::support::{Hotcell, PATIENCE, eventually, everyone, has};

/// A server at which interpreters wait.
fn serve(hotcell: &Hotcell) -> raw::Stdio {
    let mut client = super::serve(hotcell);
    let waits = eventually(PATIENCE, || {
        let output = client.run(json!({ "code": "0", "language": "python" }));
        output["runtime"]["start"] == "warm"
    });
    assert!(waits, "as {}", hotcell.name);
    client
}

/// A program in an interpreter that waited for it, and in a new one: that is what a program with arguments gets.
fn calls(code: &str) -> [(Value, &'static str); 2] {
    let call = json!({ "code": code, "language": "python" });
    let mut cold = call.clone();
    cold["args"] = json!(["x"]);
    [(call, "warm"), (cold, "cold")]
}

/// How a program may end after it has printed, each without a word of its own to its streams.
const ENDS: [&str; 5] = [
    "import os; os._exit(3)",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "import ctypes; ctypes.string_at(0)",
    "while True: pass",
    "import os; os.execv('/bin/true', ['true'])",
];

#[test]
fn what_was_printed_comes_back_however_the_program_ends() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        for end in ENDS {
            let code = format!(
                "import sys\nprint('a line')\nsys.stdout.buffer.write(b'bytes ')\nsys.stdout.write('no end')\n{end}"
            );
            for (mut call, start) in calls(&code) {
                call["timeout"] = json!(2);
                let output = client.run(call);
                assert_eq!(output["stdout"], "a line\nbytes no end", "{end}: {output}");
                assert_eq!(output["runtime"]["start"], start, "{output}");
            }
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_when_a_program_is_ended_in_the_middle_of_much() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        // It ends itself from another thread while it prints as fast as it can; each line has the number of the next.
        let code = "import os, threading, time\n\
                    threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0)), daemon=True).start()\n\
                    n = 0\nwhile True:\n    print(n)\n    n += 1";
        for (call, _) in [calls(code), calls(code), calls(code)].concat() {
            let output = client.run(call);
            let id = output["id"].as_str().expect("it has one");
            let check = "lines = open('out.txt').read().split('\\n')[:-1]\n\
                         print(len(lines) > 100, lines == [str(n) for n in range(len(lines))])";
            // What fits into an answer is not kept besides.
            let text = output["stdout"].as_str();
            let text = text.filter(|_| output["truncated"].is_null());
            let kept = json!({ "uri": format!("run://{id}/stdout") });
            let files = json!({ "out.txt": text.map_or(kept, Into::into) });
            let checked =
                client.run(json!({ "code": check, "language": "python", "files": files }));
            assert_eq!(checked["stdout"], "True True\n", "{checked}");
        }
    }
}

#[test]
fn what_others_write_comes_in_the_order_of_the_program() {
    let code = "\
import os, subprocess, sys
print('a'); os.write(1, b'b\\n')
print('c'); os.system('echo d')
print('e'); subprocess.run(['echo', 'f'])
print('g'); child = os.fork()
if child == 0:
    print('h'); sys.stdout.flush(); os._exit(0)
os.waitpid(child, 0); print('i')
copy = os.dup(1); os.dup2(os.open('file', os.O_CREAT | os.O_RDWR), 1)
print('not here', flush=True)
os.dup2(copy, 1); print('j')
sys.stdout.reconfigure(encoding='utf-16-le'); print('k')";
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        for (call, _) in calls(code) {
            let output = client.run(call);
            let printed = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\0\n\0";
            assert_eq!(output["stdout"], printed, "{output}");
        }
        // Between the two streams too: who reads both as one sees them in order.
        let code = "import os, sys\nos.dup2(1, 2)\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)";
        for (call, _) in calls(code) {
            let output = client.run(call);
            assert_eq!(output["stdout"], "1\n2\n3\n", "{output}");
        }
    }
}

#[test]
fn what_was_printed_is_seen_while_the_program_does_something_else() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        let code = "print('first')\nprint('no end', end='')\nwhile True: pass";
        for (mut call, start) in calls(code) {
            call["background"] = json!(true);
            call["timeout"] = json!(300);
            let job = client.run(call);
            let id = job["job"].as_str();
            let id = id.unwrap_or_else(|| panic!("{job}")).to_owned();
            let seen = eventually(PATIENCE, || {
                let state = client.call("session", json!({ "job": id }));
                state.to_string().contains("first\\nno end")
            });
            assert!(seen, "{start}, as {}", hotcell.name);
            client.call("session", json!({ "job": id, "action": "cancel" }));
        }
    }
}

#[test]
fn the_streams_are_those_of_plain_python() {
    if !has("python3") {
        return;
    }
    let code = "\
import io, sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    buffer = stream.buffer
    print(stream.line_buffering, stream.write_through, type(stream).__name__, type(buffer).__name__, type(buffer.raw).__name__, stream.encoding)
print(type(sys.stdout.write).__name__, sys.stdout.write.__self__ is sys.stdout, sys.stdout.write.__name__)
print(sys.stdout.write('äö\\n'), sys.stdout.flush(), sys.stdout.buffer.write(b'123\\n'), sys.stdout.flush())
try: sys.stdout.write(1)
except TypeError as error: print(error)
try: sys.stdout.buffer.write('x')
except TypeError as error: print(error)
sys.stdout.writelines(['x', 'y\\n'])
print(isinstance(sys.stdout, io.TextIOBase), sys.stdout.fileno(), sys.stdout.closed, sys.orig_argv[2:])
sys.stdout.close()
try: print(1)
except ValueError as error: print(error, file=sys.stderr)";
    let hotcell = everyone().remove(0);
    let mut client = serve(&hotcell);
    let file = hotcell.write("main.py", code);
    for (call, start) in calls(code) {
        let output = client.run(call.clone());
        let plain = Command::new("/usr/bin/python3")
            .arg(&file)
            .args(call["args"].as_array().and_then(|it| it[0].as_str()))
            .env("LC_ALL", "C.UTF-8")
            .env_remove("PYTHONUNBUFFERED")
            .output()
            .expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        assert_eq!(output["stdout"], text(plain.stdout), "{output}");
        assert_eq!(output["stderr"], text(plain.stderr), "{output}");
        assert_eq!(output["runtime"]["start"], start, "{output}");
    }
}

#[test]
fn a_new_interpreter_whose_streams_are_others_writes_at_once() {
    // They print and are killed; what they print is not gathered, and comes back all the same.
    let end = "\nprint('still here')\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)";
    let of_streams = "import sys\nprint(sys.stdout.encoding)";
    let archive = "# PK\u{5}\u{6}\nimport sys\nprint('-u' in sys.orig_argv)";
    let hotcell = everyone().remove(0);
    for (code, env, said) in [
        (of_streams, "PYTHONIOENCODING=latin-1", "iso8859-1"),
        (of_streams, "PYTHONUNBUFFERED=1", "utf-8"),
        (of_streams, "LD_PRELOAD=", "utf-8"),
        (archive, "NAME=value", "True"),
    ] {
        let code = format!("{code}{end}");
        let output = hotcell.run(&["--json", "--env", env, "-l", "python", "-c", &code]);
        let output = output.json();
        assert_eq!(output["stdout"], format!("{said}\nstill here\n"), "{env}");
        assert_eq!(output["signal"], "SIGKILL", "{env}: {output}");
    }
}

#[test]
fn a_new_interpreter_shows_nothing_of_the_library() {
    let code = "\
import os
print(sorted(os.environ), [it for it in os.listdir('/proc/self/fd') if int(it) > 3], os.listdir('.home'))
print(open('/proc/self/environ').read().count('ZYGOTE'), open('/proc/self/cmdline').read().split('\\0')[1:])";
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        let [(warm, _), (cold, _)] = calls(code);
        let (warm, cold) = (client.run(warm), client.run(cold));
        let expected = warm["stdout"].as_str().expect("text");
        let expected = expected.replace("'main.py'", "'main.py', 'x'");
        assert_eq!(cold["stdout"], expected, "as {}: {cold}", hotcell.name);
    }
}
