//! Programs that speak to whatever waits for their end: to every descriptor they were left, in
//! every way that could be taken for a message.

use serde_json::{Value, json};

use super::{RUNS, many, serve};
use crate::support::{everyone, has};

/// Begins each liar: the descriptors beyond the three, found by trying them all.
const OTHERS: &str = "
import os, socket, struct, sys, time
others = []
for n in range(3, 1024):
    try:
        os.fstat(n)
        others.append(n)
    except OSError:
        pass
def say(data):
    for n in others:
        try:
            os.set_blocking(n, False)
            os.write(n, data)
        except OSError:
            pass
";

/// What each says; each ends in a way that must be reported as it was.
const LIES: [(&str, &str); 8] = [
    ("closes", "for n in others: os.close(n)"),
    ("garbage", "[say(os.urandom(4096)) for _ in range(64)]"),
    (
        "huge frames",
        "[say(struct.pack(order + size, (1 << bits) - 1) + b'x' * 65536) \
         for order in '<>' for size, bits in (('I', 32), ('Q', 64), ('H', 16))]",
    ),
    (
        "early done",
        "[say(prefix + done) for prefix in (b'', b'\\0\\0\\0\\5', b'\\5\\0\\0\\0', b'\\n') \
         for done in (b'D', b'D\\0', b'D\\0\\0\\0\\0', b'R', b'\\0', b'\\1', b'\\2', b'\\3', \
         b'{\"type\":\"done\",\"code\":0}\\n', b'{\"done\":0}\\n', b'done 0\\n', bytes(16))]",
    ),
    ("many empty frames", "[say(bytes(4)) for _ in range(20000)]"),
    (
        "shuts down",
        "
for n in others:
    try: socket.socket(fileno=os.dup(n)).shutdown(2)
    except OSError: pass",
    ),
    (
        "fills it",
        "
for n in others:
    try:
        os.set_blocking(n, False)
        while True: os.write(n, b'z' * 65536)
    except OSError: pass",
    ),
    (
        "gives it away",
        "
pid = os.fork()
if pid == 0:
    os.setsid()
    [say(b'D' * 100) or time.sleep(0.01) for _ in range(20)]
    os._exit(0)",
    ),
];

#[test]
fn a_program_that_lies_about_its_end_costs_only_its_own_run() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let mut client = serve(&hotcell);
        for (name, lie) in LIES {
            let code = format!("{OTHERS}\n{lie}\nprint('late')\nsys.exit(5)");
            let lies = many(
                &mut client,
                4,
                |_| json!({ "code": code, "language": "python" }),
            );
            for output in lies {
                // Its own run may be cut short, and then says so; it is never taken for a success.
                let whole = output["stdout"] == "late\n" && output["exit_code"] == 5;
                assert!(whole || output["status"] != "ok", "{name}: {output}");
            }
            assert_right(&many(&mut client, 8, honest), name);
        }
        assert_right(&many(&mut client, RUNS, honest), "in the end");
    }
}

#[test]
fn a_program_that_says_nothing_and_holds_everything_ends_at_its_limit() {
    let code = format!(
        "{OTHERS}\nimport signal\nsignal.pthread_sigmask(0, range(1, 65))\nprint('up')\ntime.sleep(60)"
    );
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let mut client = serve(&hotcell);
        // Beside ones that are honest, in one flight.
        let outputs = many(&mut client, 8, |n| match n % 2 {
            0 => json!({ "code": code, "language": "python", "timeout": 1 }),
            _ => honest(n),
        });
        for (n, output) in outputs.iter().enumerate() {
            match n % 2 {
                0 => assert_eq!(
                    (&output["status"], &output["stdout"]),
                    (&json!("timeout"), &json!("up\n"))
                ),
                _ => assert_eq!(output["stdout"], format!("answer {n}\n")),
            }
        }
        assert_right(&many(&mut client, RUNS, honest), "afterwards");
    }
}

fn honest(n: usize) -> Value {
    json!({ "code": "import sys\nprint('answer', sys.argv[1])", "language": "python", "args": [n.to_string()] })
}

/// Each answer is its own and whole.
fn assert_right(outputs: &[Value], after: &str) {
    for (n, output) in outputs.iter().enumerate() {
        assert_eq!(output["status"], "ok", "{after}: {output}");
        assert_eq!(output["stdout"], format!("answer {n}\n"), "{after}");
        assert_eq!(output["stderr"], "", "{after}");
    }
}
