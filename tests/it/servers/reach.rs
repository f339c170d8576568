//! What a run was not given it does not reach, nothing of a server's is seen, and who names none starts none.

use std::fs;

use serde_json::{Value, json};

use super::{KEY, configure, log, run, serve, structured};
use crate::support::{Running, everyone};

#[test]
fn a_run_reaches_the_servers_it_was_given_and_no_others() {
    for hotcell in everyone() {
        configure(&hotcell);
        let mut client = serve(&hotcell);
        let mut call = |code: &str, servers: Value| {
            client.run(json!({ "language": "python", "code": code, "servers": servers }))
        };
        // Control: what is given is called.
        let given = call("print(clock.text(text='given'))", json!(["clock"]));
        assert_eq!(structured(&given)["stdout"], "given\n", "{given}");
        assert!(log(&hotcell, "clock.log").contains("given"));

        let taken = call("clock\nprint(other_clock)", json!(["clock"]));
        let said = structured(&taken)["stderr"].as_str().unwrap_or_default();
        assert!(said.contains("NameError"), "{taken}");
        // Older ones have no notes.
        let newer = call("import sys\nprint(sys.version_info >= (3, 11))", json!([]));
        let newer = structured(&newer)["stdout"] == "True\n";
        let why = "the server `other_clock` is not among the `servers` of this run";
        assert_eq!(said.contains(why), newer, "{taken}");
        let post = r#"
import json, socket
for server in ["other_clock", "Other Clock"]:
    body = json.dumps({"server": server, "tool": "text", "arguments": {"text": "stolen"}}).encode()
    line = socket.create_connection(("127.0.0.1", 3128), 5)
    line.sendall(b"POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    print(line.makefile("rb").read().split(b"\r\n\r\n")[1].decode())
"#;
        let taken = call(&format!("{post}\nclock"), json!(["clock"]));
        let said = structured(&taken)["stdout"].as_str().unwrap_or_default();
        assert_eq!(said.matches("unknown_server").count(), 2, "{taken}");
        let none = call(post, json!([]));
        assert!(
            structured(&none)["stderr"]
                .as_str()
                .unwrap_or_default()
                .contains("Connection refused"),
            "{none}"
        );
        assert!(!log(&hotcell, "other.log").contains("stolen"));

        let unknown = call("1", json!(["nobody"]));
        let error = &structured(&unknown)["error"];
        assert_eq!(error["kind"], "unknown_server", "{unknown}");
        assert_eq!(
            error["hint"], "Choose one of: Other Clock, clock, gone.",
            "{unknown}"
        );
    }
}

#[test]
fn nothing_that_a_server_was_started_with_is_seen_by_a_program() {
    for hotcell in everyone() {
        configure(&hotcell);
        let code = r#"
import os
print(sorted(name for name in clock.environment() if "CLOCK" in name), clock.environment()["OWN_CLOCK_KEY"], clock.environment()["CLOCK_NAME"])
try:
    clock.text(text=5, nothing=os.environ)
except Exception as error:
    print(type(error).__name__)
print("sesame" in str(dict(os.environ)), "sesame" in open("/proc/self/environ").read())
"#;
        let result = run(&hotcell, &["-l", "python", "-c", code]);
        let expected = "['CLOCK_LOG', 'CLOCK_NAME', 'OWN_CLOCK_KEY'] (hidden) a plain value\nTypeError\nFalse False\n";
        assert_eq!(result["stdout"], expected, "{result}");
        assert!(!result.to_string().contains(KEY));
        // Nor does a server see more of ours than it needs.
        let code = "print([n for n in clock.environment() if n not in ('HOME PATH TMPDIR LC_CTYPE PWD SHLVL _ HOTCELL_UPSTREAM'.split()) and 'CLOCK' not in n])";
        assert_eq!(
            run(&hotcell, &["-l", "python", "-c", code])["stdout"],
            "[]\n"
        );
    }
}

#[test]
fn a_program_that_names_no_server_starts_none() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let result = run(&hotcell, &["-l", "python", "-c", "print(1)"]);
    assert_eq!(result["stdout"], "1\n");
    assert_eq!(log(&hotcell, "clock.log"), "");
    let plan = |code: &str| {
        let mut command = hotcell.command();
        let answer =
            Running::start(command.args(["run", "--plan", "-l", "python", "-c", code])).finish();
        serde_json::from_str::<Value>(&answer.out()).expect("a plan")
    };
    assert_eq!(plan("print(1)")["servers"], Value::Null);
    assert_eq!(
        plan("clock.wait()")["servers"],
        json!(["other_clock", "clock", "gone"])
    );
}

#[test]
fn a_hotcell_that_is_its_own_server_starts_once() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    // Its own configuration is found by the one that it starts, under whatever name.
    let program = env!("CARGO_BIN_EXE_hotcell");
    let log = hotcell.write("starts.log", "");
    let starts = hotcell.write(
        "starts.sh",
        format!("echo started >> {}\nexec {program} serve\n", log.display()),
    );
    let config = format!("[servers.innocent]\ncommand = 'sh'\nargs = [{starts:?}]\n");
    hotcell.write("home/.config/hotcell/config.toml", config);
    let code = "value = innocent.run(code='print(6 * 7)', language='lua')\nprint(value['stdout'])";
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(result["stdout"], "42\n\n", "{result}");
    assert_eq!(fs::read_to_string(&log).expect("its log"), "started\n");
}
