//! The tools of other MCP servers, called by programs: what a tool says is a value there, what a run was not given it
//! does not reach, and nothing of a server's is seen; witnessed by the server's own log.

mod command;
mod consent;
mod discovery;
mod hostile;
mod javascript;
mod lifecycle;
mod login;
mod many;
mod policy;
mod python;
mod remote;
mod saved;
mod tokens;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::support::{Hotcell, PATIENCE, Running, eventually, everyone, has};

const KEY: &str = "sesame-open-1234";

/// Two servers, `clock` and `Other Clock`, each with a log of its own.
pub fn configure(hotcell: &Hotcell) {
    let script = hotcell.write("clock.py", include_str!("../servers/clock.py"));
    let mut config = String::new();
    for (name, log) in [("clock", "clock.log"), ("Other Clock", "other.log")] {
        let log = hotcell.write(log, "");
        config += &format!(
            "[servers.{name:?}]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {log:?}, CLOCK_NAME = 'a plain value' }}\npass = ['OWN_CLOCK_KEY']\n"
        );
    }
    config += "[servers.gone]\ncommand = 'no-such-program'\n";
    hotcell.write("home/.config/hotcell/config.toml", config);
}

/// Two servers that give all that a tool can give, `studio` and `My Studio`.
fn studio(hotcell: &Hotcell) {
    let script = hotcell.write("studio.py", include_str!("../servers/studio.py"));
    let entry = |name| format!("[servers.{name}]\ncommand = 'python3'\nargs = [{script:?}]\n");
    let config = entry("studio") + &entry("'My Studio'");
    hotcell.write("home/.config/hotcell/config.toml", config);
}

fn log(hotcell: &Hotcell, name: &str) -> String {
    fs::read_to_string(hotcell.place(name)).expect("the server's log")
}

fn run(hotcell: &Hotcell, arguments: &[&str]) -> Value {
    let mut command = hotcell.command();
    command
        .env("OWN_CLOCK_KEY", KEY)
        .env("XDG_DATA_HOME", data())
        .args(["run", "--json"])
        .args(arguments);
    Running::start(&mut command).finish().json()
}

/// Where `scripts/test` has brought deno.
fn data() -> String {
    std::env::var("HOTCELL_TEST_DATA").unwrap_or_default()
}

pub fn serve(hotcell: &Hotcell) -> Client {
    let mut command = hotcell.command();
    command.env("OWN_CLOCK_KEY", KEY).arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client
}

fn structured(result: &Value) -> &Value {
    &result["structuredContent"]
}

/// Calls, a caught error, and three calls at once: each is answered when all of them are there.
const PYTHON: &str = r#"
import asyncio
value = clock.echo_back(value={"a": [1, None, "é"]})
print(type(value).__name__, value)
try:
    clock.fail()
except ToolError as error:
    print(error.kind, error.server, error.tool, isinstance(error, Exception))
async def three():
    values = await asyncio.gather(*[clock.meet(count=3, note=str(n)) for n in range(3)])
    return [value["note"] for value in values]
print(asyncio.run(three()))
"#;
const PYTHON_SAYS: [&str; 3] = [
    "dict {'value': {'a': [1, None, 'é']}}",
    "tool clock fail True",
    "['0', '1', '2']",
];
const SCRIPT: &str = r#"
(async () => {
    const value = await clock.echoBack({ value: { a: [1, null, 'é'] } });
    console.log(typeof value, JSON.stringify(value));
    try {
        await clock.fail();
    } catch (error) {
        console.log(error.kind, error.server, error.tool, error instanceof ToolError && error instanceof Error);
    }
    const values = await Promise.all([0, 1, 2].map((n) => clock.meet({ count: 3, note: `${n}` })));
    console.log(values.map((value) => value.note).join());
})();
"#;
const SCRIPT_SAYS: [&str; 3] = [
    r#"object {"value":{"a":[1,null,"é"]}}"#,
    "tool clock fail true",
    "0,1,2",
];

#[test]
fn a_tool_is_a_plain_function_in_python_and_javascript() {
    for hotcell in everyone() {
        configure(&hotcell);
        let mut ways = vec![("python", PYTHON, PYTHON_SAYS)];
        for script in ["javascript@embedded", "typescript@embedded"] {
            ways.push((script, SCRIPT, SCRIPT_SAYS));
        }
        if has("node") {
            ways.push(("javascript@node", SCRIPT, SCRIPT_SAYS));
        }
        // It is in the home of whoever tests.
        if !data().is_empty() && hotcell.uid == rustix::process::getuid().as_raw() {
            ways.push(("javascript@deno", SCRIPT, SCRIPT_SAYS));
            ways.push(("typescript@deno", SCRIPT, SCRIPT_SAYS));
        }
        for (language, code, expected) in ways {
            let result = run(&hotcell, &["-l", language, "-c", code]);
            let said: Vec<&str> = result["stdout"]
                .as_str()
                .unwrap_or_default()
                .lines()
                .collect();
            assert_eq!(said, expected, "{language}: {result}");
            assert_eq!(result["status"], "ok", "{language}: {result}");
            assert_eq!(result["stderr"], "", "{language}");
        }
        let log = log(&hotcell, "clock.log");
        assert!(
            log.contains(r#"call echo-back {"value": {"a": [1, null, "\u00e9"]}}"#),
            "{log}"
        );
        assert!(log.contains("pong"), "a server's ping is answered: {log}");
    }
}

#[test]
fn values_are_what_a_tool_gave_and_errors_say_what_to_do() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let code = r#"
print(clock.text(text='[1, "a"]'), clock.text(text="plain"), clock.picture()[0].mime, len(clock.large(bytes=10_000_000)))
print(clock.wait({"seconds": 0}), mcp.call("clock.text", {"text": "x"}), other_clock.text(text="y"), mcp.servers.other_clock)
print(clock["echo-back"](value=1))
for bad in [lambda: clock.nothing(), lambda: mcp.call("none.such"), lambda: gone.any(), lambda: clock.wait(1), lambda: clock.wait(object())]:
    try:
        bad()
    except Exception as error:
        print(type(error).__name__, getattr(error, "kind", ""), error)
print(mcp.help("clock").splitlines()[:3])
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let expected = [
        "[1, 'a'] plain image/png 10000000",
        "{'waited': 0, 'note': None} x y <server other_clock>",
        "{'value': 1}",
        "ToolError unknown_tool clock.nothing: unknown tool; known are: wait, echo-back, fail, text, picture, large, environment, die",
        "ToolError unknown_server none.such: unknown server; known are: other_clock, clock, gone",
        "ToolError unavailable gone.any: the server is not available: it has ended; run `hotcell servers` to see its messages",
        "TypeError  clock.wait takes its arguments by name, or as one dict: clock.wait({seconds:number, note?:string}) // Waits",
        "TypeError  clock.wait takes its arguments by name, or as one dict: clock.wait({seconds:number, note?:string}) // Waits",
        "['clock.wait({seconds:number, note?:string})', '    Waits. Then it says so.', '    Nothing else.']",
    ];
    let said: Vec<&str> = result["stdout"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .collect();
    assert_eq!(said, expected, "{result}");

    // In a run with a network the proxy is at the same port.
    let flags = [
        "--network",
        "some.test",
        "-l",
        "python",
        "-c",
        "print(clock.text(text='both'))",
    ];
    assert_eq!(run(&hotcell, &flags)["stdout"], "both\n");
    // At the top level of a program, where Python alone refuses it.
    let code = "print(await clock.text(text='awaited'))";
    assert_eq!(
        run(&hotcell, &["-l", "python", "-c", code])["stdout"],
        "awaited\n"
    );
    // What is not caught ends the program as any error does.
    let result = run(&hotcell, &["-l", "python", "-c", "clock.fail()"]);
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("failed"), &json!(1))
    );
    assert!(
        result["stderr"]
            .as_str()
            .unwrap_or_default()
            .contains("ToolError: clock.fail: it broke"),
        "{result}"
    );
}

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

        let taken = call("print(other_clock)", json!(["clock"]));
        assert!(
            structured(&taken)["stderr"]
                .as_str()
                .unwrap_or_default()
                .contains("NameError"),
            "{taken}"
        );
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
fn a_server_that_dies_is_started_again_and_costs_one_call() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let code = r#"
for _ in range(2):
    try:
        clock.die()
    except ToolError as error:
        print(error.kind, error)
    print(clock.text(text="again"))
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let round = "unavailable clock.die: the server is not available: it has ended; run `hotcell servers` to see its messages\nagain\n";
    assert_eq!(result["stdout"], round.repeat(2), "{result}");
    assert_eq!(log(&hotcell, "clock.log").matches("start").count(), 3);
}

#[test]
fn a_call_ends_with_its_run_and_a_server_with_hotcell() {
    for hotcell in everyone() {
        configure(&hotcell);
        for killed in [false, true] {
            fs::write(hotcell.place("clock.log"), "").expect("an empty log");
            let mut client = serve(&hotcell);
            let code = "clock.wait(seconds=60)";
            let result = client.run(json!({ "language": "python", "code": code, "timeout": 1 }));
            assert_eq!(structured(&result)["status"], "timeout", "{result}");
            let seen =
                |what: &str| eventually(PATIENCE, || log(&hotcell, "clock.log").contains(what));
            assert!(seen("cancelled"), "{}", log(&hotcell, "clock.log"));
            let text = log(&hotcell, "clock.log");
            let pid = text
                .lines()
                .find_map(|line| line.strip_prefix("start "))
                .expect("its pid");
            let process = Path::new("/proc").join(pid);
            assert!(process.exists(), "it is kept for the next call");
            if killed {
                client.child.kill().expect("a kill");
                client.child.wait().expect("an end");
            } else {
                drop(client);
            }
            assert!(
                eventually(PATIENCE, || !process.exists()),
                "{killed}: {pid} is left"
            );
        }
    }
}

#[test]
fn a_client_is_told_the_tools_when_they_are_known() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let mut client = serve(&hotcell);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let line = "\nclock.wait({seconds:number, note?:string}) // Waits\nclock.echo_back({value?:any}) // Gives back what it got\n";
    // Each server is told of when it has answered.
    let run = loop {
        client.wait(|message| message["method"] == "notifications/tools/list_changed");
        let listed = client.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let run = tools.iter().find(|tool| tool["name"] == "run").expect("it");
        if run["description"]
            .as_str()
            .unwrap_or_default()
            .contains(line)
        {
            break run.clone();
        }
    };
    let text = run["description"].as_str().unwrap_or_default();
    assert!(
        run["inputSchema"]["properties"]["servers"].is_object(),
        "{run}"
    );
    assert!(text.len() < 2500, "{text}");

    // Who has no servers is told nothing of them.
    hotcell.write("home/.config/hotcell/config.toml", "");
    let listed = serve(&hotcell).request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let run = tools.iter().find(|tool| tool["name"] == "run").expect("it");
    assert!(!run.to_string().contains("server"), "{run}");
}

#[test]
fn the_command_lists_servers_and_shows_what_a_broken_one_says() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let list = |flags: &[&str]| {
        let mut command: Command = hotcell.command();
        Running::start(command.arg("servers").args(flags)).finish()
    };
    let none = list(&[]);
    assert_eq!(
        none.out(),
        "No servers are configured (see docs/servers.md).\n"
    );
    assert_eq!(none.code, Some(0));

    configure(&hotcell);
    let all = list(&[]);
    assert_eq!(all.code, Some(1));
    let expected = "clock: 9 tools\n  OWN_CLOCK_KEY is not set\n  clock.wait({seconds:number, note?:string}) // Waits\n";
    assert!(all.out().contains(expected), "{}", all.out());
    assert!(
        all.out()
            .contains("gone: the server is not available: it has ended\n"),
        "{}",
        all.out()
    );
    assert!(
        all.err()
            .contains("hotcell: cannot start `no-such-program`: No such file or directory"),
        "{}",
        all.err()
    );
    let all: Value = serde_json::from_str(&list(&["--json"]).out()).expect("JSON");
    assert_eq!(
        (&all[0]["alias"], &all[2]["tools"]),
        (&json!("other_clock"), &Value::Null),
        "{all}"
    );

    let command = |words: &[&str]| {
        let mut command: Command = hotcell.command();
        command.env("OWN_CLOCK_KEY", KEY).arg("servers").args(words);
        Running::start(&mut command).finish()
    };
    let listed = command(&["list"]);
    assert_eq!(
        listed.out(),
        "Other Clock: 9 tools\nclock: 9 tools\ngone: 0 tools\n"
    );
    assert!(!listed.err().contains("clock started"), "{}", listed.err());
    assert_eq!(command(&["check", "clock"]).whole().1, "clock: 9 tools\n");
    assert_eq!(command(&["check", "clock", "gone"]).code, Some(1));
    let told = command(&["tools", "clock", "wait"]).out();
    assert_eq!(
        told,
        "clock.wait({seconds:number, note?:string})\n    Waits. Then it says so.\n    Nothing else.\n"
    );
    for (words, code, said) in [
        (
            &["call", "clock.echoBack", r#"{"value": [1]}"#][..],
            0,
            "{\n  \"value\": [\n    1\n  ]\n}\n",
        ),
        (
            &["call", "clock.wait", "seconds=0", "note=a b"],
            0,
            "{\n  \"waited\": 0,\n  \"note\": \"a b\"\n}\n",
        ),
        (&["call", "clock.text", "text=plain"], 0, "\"plain\"\n"),
        (&["call", "-r", "clock.text", "text=plain"], 0, "plain\n"),
        (&["call", "clock.fail"], 1, ""),
        (&["call", "clock.nothing"], 2, ""),
        (&["call", "nobody.any"], 2, ""),
        (&["call", "clock.text", "text"], 2, ""),
        (&["call", "gone.any"], 4, ""),
        (&["tools", "nobody"], 2, ""),
    ] {
        let answer = command(words);
        assert_eq!(
            (answer.code, answer.out().as_str()),
            (Some(code), said),
            "{words:?}: {}",
            answer.err()
        );
        assert_eq!(
            answer.err().contains("hotcell: "),
            code != 0,
            "{}",
            answer.err()
        );
        assert!(!answer.err().contains(KEY), "{}", answer.err());
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
fn b14_the_tools_are_there_where_hotcell_stands_in_for_another_server() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let mut command = hotcell.command();
    command.args(["serve", "--as", "code-runner-mcp"]);
    let mut client = Client::of(command);
    client.begin();
    let tools = loop {
        client.wait(|message| message["method"] == "notifications/tools/list_changed");
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        if tools.to_string().contains("\\nclock.wait(") {
            break tools;
        }
    };
    let javascript =
        json!({ "code": "console.log((await clock.text({ text: 'from JavaScript' })))" });
    let python = json!({ "code": "import asyncio\nasync def main():\n    print(await clock.text(text='from Python'))\nasyncio.run(main())\nprint(clock.text(text='again'))" });
    let calls = [
        (javascript, "from JavaScript"),
        (python, "from Python\nagain"),
    ];
    for (tool, (arguments, expected)) in tools.as_array().expect("a list").iter().zip(calls) {
        let text = tool["description"].as_str().unwrap_or_default();
        assert!(
            text.contains("clock.wait({seconds:number, note?:string})"),
            "{text}"
        );
        let params = json!({ "name": tool["name"], "arguments": arguments });
        let answer = client.request("tools/call", params);
        let said = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default();
        assert!(said.contains(expected), "{answer}");
    }
}

#[test]
fn a_python_that_waited_calls_tools_too_and_one_that_calls_none_has_its_port_for_itself() {
    for hotcell in everyone() {
        configure(&hotcell);
        let mut client = serve(&hotcell);
        let mut run = |code: &str| {
            let result = client.run(json!({ "language": "python", "code": code }));
            structured(&result)["stdout"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let waited = "print('zygote' in open('/proc/self/maps').read())\n";
        let calls = "import asyncio, subprocess, sys\n\
            print(clock.text(text='plain'))\n\
            async def main():\n    print(await clock.text(text='awaited'))\n\
            asyncio.run(main())\n\
            print(subprocess.run([sys.executable, '-c', 'print(clock.text(text=\"child\"))'], capture_output=True, text=True).stdout.strip())\n\
            print('sitecustomize' in sys.modules, [p for p in sys.path if 'hotcell' in p])\n";
        let plain = run("import sys; print('sitecustomize' in sys.modules, [])");
        let expected = format!("True\nplain\nawaited\nchild\n{plain}");
        // The first may come before one waits.
        let mut expect = |code: &str, expected: &str| {
            let mut said = String::new();
            let came = eventually(PATIENCE, || {
                said = run(&format!("{waited}{code}"));
                said == expected
            });
            assert!(came, "{said}\nis not\n{expected}");
        };
        expect(calls, &expected);

        let own = "import socket\n\
            try:\n    socket.create_connection(('127.0.0.1', 3128), 2)\n\
            except OSError as error:\n    print(error.strerror)\n\
            print(socket.create_server(('127.0.0.1', 3128)).getsockname()[1])\n";
        expect(own, "True\nConnection refused\n3128\n");
    }
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
