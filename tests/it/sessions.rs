//! Sessions on the real binary: what is kept between calls, what ends it, and whose it is.

mod branches;
mod hostile;
mod languages;
mod life;
mod reach;
mod several;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::support::{Hotcell, everyone};

/// A server of this user, with these flags.
fn serve(hotcell: &Hotcell, flags: &[&str]) -> Client {
    let mut command = hotcell.command();
    command.arg("serve").args(flags);
    let mut client = Client::of(command);
    client.begin();
    client
}

/// The facts of a Python call in the session `s`.
fn call(client: &mut Client, code: &str) -> Value {
    call_with(client, json!({ "code": code, "language": "python" }))
}

/// The facts of a call in the session `s` with these arguments.
fn call_with(client: &mut Client, mut arguments: Value) -> Value {
    if arguments["session"].is_null() {
        arguments["session"] = "s".into();
    }
    let mut facts = crate::raw::record(&client.run(arguments));
    if let Some(value) = facts.get_mut("value") {
        *value = plain(value).into();
    }
    facts
}

/// A value as text, JSON with spaces.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        json => json.to_string().replace(',', ", "),
    }
}

/// The answer of the tool `session`.
fn sessions(client: &mut Client, arguments: Value) -> Value {
    let params = json!({ "name": "session", "arguments": arguments });
    client.request("tools/call", params)["result"]["structuredContent"].clone()
}

/// The names of the sessions that are listed.
fn names(client: &mut Client) -> Vec<String> {
    let listed = sessions(client, json!({ "action": "list" }));
    let listed = listed["sessions"].as_array().unwrap().iter();
    let name = |session: &Value| session["name"].as_str().unwrap().to_owned();
    listed.map(name).collect()
}

fn note(facts: &Value) -> String {
    facts["notes"].as_array().map_or(String::new(), |notes| {
        let notes: Vec<&str> = notes.iter().filter_map(Value::as_str).collect();
        notes.join("; ")
    })
}

#[test]
fn what_a_call_leaves_is_there_for_the_next() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let facts = call(
            &mut client,
            "import os, json\nx = 20\ndef f(y):\n    return x + y\nos.makedirs('d')\nos.chdir('d')\nos.environ['A'] = 'b'\nopen('kept.txt', 'w').write('text')",
        );
        assert_eq!(facts["status"], "ok", "{}: {facts}", hotcell.name);
        assert_eq!(
            (&facts["session"], &facts["value"]),
            (&json!("s"), &json!("4"))
        );
        let code = "print(f(1), json.dumps(os.environ['A']), open('kept.txt').read(), os.path.basename(os.getcwd()))\nf(2)";
        let facts = call(&mut client, code);
        assert_eq!(
            facts["stdout"], "21 \"b\" text d\n",
            "{}: {facts}",
            hotcell.name
        );
        assert_eq!(facts["value"], "22");
        // A run beside it knows nothing of it, and a call without a language is in the session's.
        let apart = client.run(json!({ "code": "print('x' in globals())", "language": "python" }));
        assert_eq!(apart["structuredContent"]["stdout"], "False\n");
        assert_eq!(apart["structuredContent"].get("session"), None);
        let facts = call_with(&mut client, json!({ "code": "x" }));
        assert_eq!(
            (&facts["value"], &facts["language"]),
            (&json!("20"), &json!("python"))
        );
        assert_eq!(note(&facts), "", "{facts}");
    }
}

#[test]
fn files_and_input_come_with_any_call_and_replace_what_was_there() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        for text in ["first", "second"] {
            let facts = call_with(
                &mut client,
                json!({
                    "code": "print(open('in/a.txt').read(), input())",
                    "language": "python",
                    "files": { "in/a.txt": text },
                    "stdin": format!("{text} line\nnever read"),
                }),
            );
            assert_eq!(facts["stdout"], format!("{text} {text} line\n"), "{facts}");
        }
        let facts = call(&mut client, "input()");
        assert_eq!(facts["error"]["kind"], "exception");
        assert!(
            facts["stderr"]
                .as_str()
                .unwrap()
                .ends_with("EOFError: EOF when reading a line\n")
        );
    }
}

#[test]
fn a_call_is_a_file_of_its_own_for_tracebacks_and_sources() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        call(&mut client, "def f():\n    return 1 / 0");
        let facts = call(&mut client, "x = 1\nf()");
        let trace = "Traceback (most recent call last):\n  File \"/tmp/call-2.py\", line 2, in <module>\n    f()\n  \
            File \"/tmp/call-1.py\", line 2, in f\n    return 1 / 0\n";
        let stderr = facts["stderr"].as_str().unwrap();
        assert!(stderr.starts_with(trace), "{}: {stderr}", hotcell.name);
        assert_eq!(
            (&facts["exit_code"], &facts["error"]["line"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(facts["error"]["file"], "call-2.py");
        let facts = call(&mut client, "y = (\n");
        assert_eq!(facts["error"]["kind"], "syntax", "{facts}");
        assert!(!facts["stderr"].as_str().unwrap().contains("Traceback"));
        let facts = call(
            &mut client,
            "import inspect\nprint(inspect.getsource(f))\nx",
        );
        assert_eq!(facts["stdout"], "def f():\n    return 1 / 0\n\n");
        assert_eq!(facts["value"], "1");
        call(&mut client, "f()");
        let facts = call(&mut client, "import traceback\ntraceback.print_last()");
        let stderr = facts["stderr"].as_str().unwrap();
        assert!(
            stderr.contains("in f\n    return 1 / 0\n"),
            "{}: {facts}",
            hotcell.name
        );
    }
}

#[test]
fn what_works_in_one_program_works_in_many_calls() {
    let Some(hotcell) = crate::support::anyone() else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    for (code, value) in [
        (
            "import pickle\nclass P:\n    pass\ndef f():\n    return 7\nNone",
            Value::Null,
        ),
        (
            "pickle.loads(pickle.dumps(f)) is f, type(pickle.loads(pickle.dumps(P()))) is P",
            "(True, True)".into(),
        ),
        (
            "from dataclasses import dataclass\n@dataclass\nclass D:\n    a: int = 1\nD()",
            "D(a=1)".into(),
        ),
        (
            "import threading\nfound = []\nt = threading.Thread(target=lambda: found.append(f()))\nt.start()",
            Value::Null,
        ),
        ("t.join()\nfound", "[7]".into()),
        (
            "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(abs, [-1, -2]))",
            Value::Null,
        ),
        (
            "import asyncio\nasync def g():\n    await asyncio.sleep(0.01)\n    return 5\nawait g()",
            "5".into(),
        ),
        (
            "z = await g()\nqueue = asyncio.Queue()\nawait queue.put(z)",
            Value::Null,
        ),
        ("await queue.get() + z", "10".into()),
        ("__name__", "__main__".into()),
        (
            "'x' * 100_000",
            format!("{} ...", "x".repeat(16_000)).into(),
        ),
    ] {
        let facts = call(&mut client, code);
        assert_eq!(facts["status"], "ok", "{code}: {facts}");
        assert_eq!(facts["value"], value, "{code}");
    }
}

#[test]
fn an_exit_ends_the_call_and_not_the_session() {
    let Some(hotcell) = crate::support::anyone() else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    let facts = call(&mut client, "x = 5\nimport sys\nsys.exit(3)");
    assert_eq!(
        (&facts["exit_code"], &facts["status"]),
        (&json!(3), &json!("failed"))
    );
    assert_eq!(call(&mut client, "exit()")["exit_code"], 0);
    let facts = call(
        &mut client,
        "import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()\nx",
    );
    assert_eq!(
        (&facts["stdout"], &facts["value"]),
        (&json!("child\n"), &json!("5"))
    );
    // Its own process is the session, so the end of that is the end of both.
    let facts = call(&mut client, "print('last', flush=True)\nos._exit(4)");
    assert_eq!(
        (&facts["exit_code"], &facts["stdout"]),
        (&json!(4), &json!("last\n"))
    );
    assert!(note(&facts).contains("are lost"), "{facts}");
    let facts = call(&mut client, "'x' in globals()");
    assert_eq!(facts["value"], "false");
    assert!(note(&facts).contains("started anew"), "{facts}");
}

#[test]
fn a_call_shows_pictures_values_and_the_files_that_it_changed() {
    let mut client = Client::open(&[]);
    let mut call =
        |code: &str| client.run(json!({ "code": code, "language": "python", "session": "s" }));
    call(
        "class Dot:\n    def _repr_svg_(self):\n        return '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><circle r=\"9\"/></svg>'",
    );
    let shown = call(
        "open('a.txt', 'w').write('1')\nopen('b.txt', 'w').write('1')\ndisplay(Dot())\n{'a': [1, None]}",
    );
    let facts = &shown["structuredContent"];
    assert_eq!(facts["value"], json!({ "a": [1, null] }), "{shown}");
    assert_eq!(facts["displays"][0]["type"], "image/svg+xml", "{facts}");
    let names = |facts: &Value| {
        let files = facts["files"].as_array().cloned().unwrap_or_default();
        files
            .iter()
            .map(|it| it["name"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(facts), ["\"a.txt\"", "\"b.txt\""]);
    let images = shown["content"].as_array().unwrap().iter();
    assert_eq!(images.filter(|it| it["type"] == "image").count(), 1);
    let quiet = call("x = 1");
    let facts = &quiet["structuredContent"];
    let expected = json!({ "status": "ok", "stdout": "", "session": "s" });
    assert_eq!(*facts, expected);
    let changed = call("open('b.txt', 'a').write('2')\n'text'");
    let facts = &changed["structuredContent"];
    assert_eq!(
        (names(facts), &facts["value"]),
        (vec!["\"b.txt\"".to_owned()], &json!("text"))
    );
}

#[test]
fn among_calls_that_are_alike_one_that_is_not_gets_what_it_asks_for() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        // The folders rest for longer than the steps of the kernel's clock.
        for round in 0..4 {
            let facts = call(
                &mut client,
                &format!("import time\ntime.sleep(.05)\n{round}"),
            );
            assert_eq!(facts["value"], round.to_string(), "{facts}");
            assert_eq!(facts.get("files"), None, "{facts}");
        }
        let facts = call_with(
            &mut client,
            json!({ "code": "open('a.txt').read()", "language": "python", "files": { "a.txt": "mine" } }),
        );
        assert_eq!(facts["value"], "mine", "{}: {facts}", hotcell.name);
        let late = json!({ "code": "time.sleep(30)", "language": "python", "timeout": 0.2 });
        assert_eq!(call_with(&mut client, late)["status"], "timeout");
        assert_eq!(call(&mut client, "time.sleep(.3)\n5")["value"], "5");
        let input = json!({ "code": "input()", "language": "python", "stdin": "typed" });
        assert_eq!(call_with(&mut client, input)["value"], "typed");
        let other = json!({ "code": "1 + 1", "language": "python", "memory": "100m" });
        let facts = call_with(&mut client, other);
        assert!(note(&facts).contains("memory"), "{facts}");
        // Each is told by its own file.
        let facts = call(&mut client, "\n1 / 0");
        assert_eq!(
            (&facts["error"]["line"], &facts["status"]),
            (&json!(2), &json!("failed")),
            "{facts}"
        );
    }
}

#[test]
fn what_is_left_or_shown_after_quiet_calls_comes_back() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let quiet = |client: &mut Client| {
            for _ in 0..3 {
                let facts = call(client, "import time\ntime.sleep(.06)");
                let nothing = (facts.get("files"), facts.get("displays"));
                assert_eq!(nothing, (None, None), "{facts}");
            }
        };
        quiet(&mut client);
        let facts = call(&mut client, "open('a.txt', 'w').write('1')");
        assert_eq!(
            facts["files"][0]["name"], "a.txt",
            "{}: {facts}",
            hotcell.name
        );
        quiet(&mut client);
        let facts = call(&mut client, "import os\nos.remove('a.txt')");
        assert_eq!(facts["deleted"], json!(["a.txt"]), "{facts}");
        quiet(&mut client);
        let facts = call(
            &mut client,
            "os.makedirs('d')\nopen('d/b.txt', 'w').write('1')",
        );
        assert_eq!(facts["files"][0]["name"], "d/b.txt", "{facts}");
        quiet(&mut client);
        for _ in 0..2 {
            let show = "class Dot:\n    def _repr_svg_(self):\n        return '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>'\ndisplay(Dot())";
            let facts = call(&mut client, show);
            assert_eq!(facts["displays"][0]["type"], "image/svg+xml", "{facts}");
            quiet(&mut client);
        }
    }
}
