//! What a tool gives is a value of the program, in Python and JavaScript, in new and in pre-started sandboxes.

use serde_json::json;

use super::{configure, data, log, run, serve, structured, studio};
use crate::support::{PATIENCE, eventually, everyone, has};

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
        "ToolError unknown_server none.such: unknown server; known are: gone, other_clock, clock",
        "ToolError unavailable gone.any: the server is not available: its program (`command`) was not found; run `hotcell servers` to see its messages",
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
fn a_server_that_is_called_like_something_of_the_language_is_reached_by_that_name() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let script = hotcell.write("studio.py", include_str!("../../servers/studio.py"));
    let entry = |name| format!("[servers.{name}]\ncommand = 'python3'\nargs = [{script:?}]\n");
    let config = entry("time") + &entry("fetch");
    hotcell.write("home/.config/hotcell/config.toml", config);

    let python = "print(time.say(text='of the server'), fetch.say(text='too'))\nimport time\nprint(time.time() > 0)\ntime.say(text='x')";
    let result = run(&hotcell, &["-l", "python", "-c", python]);
    assert_eq!(result["stdout"], "of the server too\nTrue\n", "{result}");
    let stderr = result["stderr"].as_str().unwrap();
    assert!(
        stderr.contains("AttributeError: module 'time' has no attribute 'say'"),
        "{stderr}"
    );
    // Older ones have no notes.
    let newer = "import sys\nprint(sys.version_info >= (3, 11))";
    let newer = run(&hotcell, &["-l", "python", "-c", newer])["stdout"] == "True\n";
    let told = "the server is called by mcp.call(\"time.say\", {...})";
    assert_eq!(stderr.contains(told), newer, "{stderr}");

    let script = "const own = fetch;\n\
        fetch.say({ text: 'of the server' }).then(async (said) => {\n\
            console.log(said, await time.say({ text: 'too' }), typeof fetch, fetch === own, fetch.length, fetch.name);\n\
            await fetch('http://127.0.0.1:1/').catch((error) => console.log(error.name));\n\
            globalThis.fetch = () => 'mine';\n\
            console.log(fetch());\n\
        });";
    let mut ways = vec!["javascript@embedded"];
    if has("node") {
        ways.push("javascript@node");
    }
    for language in ways {
        let result = run(&hotcell, &["-l", language, "-c", script]);
        let said = result["stdout"].as_str().unwrap();
        assert!(
            said.starts_with("of the server too function true ")
                && said.ends_with(" fetch\nTypeError\nmine\n"),
            "{language}: {result}"
        );
    }
}

#[test]
fn a_picture_that_a_tool_gave_is_shown_like_any_other() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    studio(&hotcell);
    let mut client = serve(&hotcell);
    let mut ways = vec![
        ("python", "display(studio.draw()[0])"),
        ("python", "studio.draw()[0]"),
        (
            "javascript@embedded",
            "studio.draw().then(([it]) => display(it));",
        ),
    ];
    if has("node") {
        ways.push((
            "javascript@node",
            "studio.draw().then(([it]) => display(it));",
        ));
    }
    for (language, code) in ways {
        let result = client.run(json!({ "language": language, "code": code }));
        let blocks = result["content"].as_array().unwrap();
        let pictures = blocks.iter().filter(|it| it["type"] == "image");
        let kinds: Vec<_> = pictures.map(|it| it["mimeType"].clone()).collect();
        assert_eq!(kinds, ["image/png"], "{language} {code}: {result}");
        assert!(structured(&result)["value"].is_null(), "{result}");
    }
}

#[test]
fn help_about_all_servers_says_which_of_them_cannot_be_had() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    studio(&hotcell);
    let config = hotcell.place("home/.config/hotcell/config.toml");
    let studio = std::fs::read_to_string(config).unwrap();
    let broken = "[servers.broken]\ncommand = 'x'\nurl = 'http://y.test'\n";
    hotcell.write("home/.config/hotcell/config.toml", studio + broken);
    let code = "said = mcp.help()\nprint('studio.add({first:number' in said, [it for it in said.splitlines() if it.startswith('broken')])\n\
        print('class studio' in mcp.stubs(), 'broken' in mcp.stubs())\n\
        try:\n    mcp.help('broken')\nexcept ToolError as error:\n    print(error.kind)";
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let said = result["stdout"].as_str().unwrap();
    assert!(
        said.starts_with("True ['broken: the server is not available: its entry has a mistake"),
        "{result}"
    );
    assert!(said.ends_with("\nTrue False\nunavailable\n"), "{result}");
}
