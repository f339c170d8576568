//! What the owner of a server gives: limits that calls may ask for, and folders.

use std::fs;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::support::{Hotcell, everyone};

/// Takes this many MiB and keeps them for a while: where no cgroup counts, a watcher looks now and then.
fn hungry(mib: u32) -> String {
    format!(
        "import time\nheld = bytearray({mib} << 20)\nheld[::4096] = b'x' * len(held[::4096])\n\
         time.sleep(1)\nprint('had it')"
    )
}

fn serve(hotcell: &Hotcell, flags: &[&str]) -> Client {
    let mut command = hotcell.command();
    command.arg("serve").args(flags);
    let mut client = Client::of(command);
    client.begin();
    client
}

/// The facts of a run with these arguments beside its program.
fn facts(client: &mut Client, code: &str, mut arguments: Value) -> Value {
    arguments["code"] = code.into();
    arguments["language"] = "python".into();
    client.run(arguments)["structuredContent"].clone()
}

#[test]
fn a_program_gets_the_memory_that_its_call_asks_for() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let large = facts(&mut client, &hungry(1024), json!({ "memory": "2g" }));
        assert_eq!(
            (&large["status"], &large["stdout"]),
            (&json!("ok"), &json!("had it\n")),
            "{}: {large}",
            hotcell.name
        );
        // Control: it is too much for the usual limit, and the caller is told what to ask for.
        let usual = facts(&mut client, &hungry(1024), json!({}));
        assert_eq!(usual["error"]["kind"], "memory", "{usual}");
        assert_eq!(
            usual["error"]["hint"],
            "Give a larger `memory` (up to 16 GiB), or let the program use less memory."
        );
    }
}

#[test]
fn processes_and_processors_are_asked_for_as_well() {
    let children = "import os, time\n\
        for _ in range(20):\n    if os.fork() == 0:\n        time.sleep(30)\n        os._exit(0)\n\
        print('had them')";
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &["--processes", "10"]);
        let few = facts(&mut client, children, json!({}));
        assert_eq!(few["error"]["kind"], "processes", "{few}");
        assert_eq!(
            few["error"]["hint"],
            "Give a larger `processes` (up to 4096), or start fewer processes and threads."
        );
        let many = facts(&mut client, children, json!({ "processes": 40, "cpus": 2 }));
        assert_eq!(many["stdout"], "had them\n", "{many}");
    }
}

#[test]
fn more_than_the_owner_allows_is_lowered_and_the_answer_says_who_can_raise_it() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let flags = [
        ["--max-memory", "128m"],
        ["--max-timeout", "2s"],
        ["--max-cpus", "0.5"],
        ["--max-processes", "20"],
    ];
    let mut client = serve(&hotcell, flags.as_flattened());
    let asked = json!({ "memory": "1g", "timeout": 60, "cpus": 2, "processes": 100 });
    let result = facts(&mut client, "print(1)", asked);
    assert_eq!(result["stdout"], "1\n", "{result}");
    let raised =
        |key: &str| format!("the owner can raise it with `[limits] max.{key}` in config.toml");
    let notes = [
        ("timeout", "60 s", "2 s"),
        ("memory", "1 GiB", "128 MiB"),
        ("processes", "100", "20"),
        ("cpus", "2", "0.5"),
    ];
    let notes = notes.map(|(key, asked, most)| {
        let raised = raised(key);
        format!("{key}: {asked} was asked for, {most} is the most allowed and was used; {raised}")
    });
    assert_eq!(result["notes"], json!(notes));
    // The usual limit is not above the maximum either, and there is nothing left to ask for.
    for (code, kind, key, less) in [
        (
            hungry(200),
            "memory",
            "memory",
            "Let the program use less memory",
        ),
        (
            "while True: pass".to_owned(),
            "timeout",
            "timeout",
            "Let the program do less",
        ),
    ] {
        let ended = facts(&mut client, &code, json!({}));
        assert_eq!(ended["error"]["kind"], kind, "{ended}");
        let hint = format!(
            "{less}: this is the most that the server allows, and only its owner can raise it, \
             with `[limits] max.{key}`."
        );
        assert_eq!(ended["error"]["hint"], json!(hint));
    }
    // Control: as much as is allowed is had.
    let within = facts(&mut client, &hungry(32), json!({ "memory": "100m" }));
    assert_eq!(
        (&within["stdout"], &within["notes"]),
        (&json!("had it\n"), &Value::Null)
    );
}

#[test]
fn limits_of_the_configuration_hold_for_servers_and_the_command_line() {
    for hotcell in everyone() {
        let text =
            "[limits]\ndefault = { memory = '64m' }\nmax = { memory = '256m', timeout = '1h' }\n";
        hotcell.write("home/.config/hotcell/config.toml", text);
        let plan = |flags: &[&str]| {
            let call = [&["--plan", "-l", "python", "-c", "1"], flags].concat();
            hotcell.run(&call).json()
        };
        assert_eq!(plan(&[])["limits"]["memory"], 64 << 20);
        assert_eq!(plan(&["--memory", "2g"])["limits"]["memory"], 256 << 20);
        assert_eq!(plan(&["--timeout", "50m"])["timeout_ms"], 3_000_000);
        let ended = hotcell.run(&["--memory", "256m", "-l", "python", "-c", &hungry(400)]);
        let hint = "\nhint: Raise `[limits] max.memory` in config.toml, or let the program use less memory.\n";
        assert!(ended.err().ends_with(hint), "{}", ended.err());
        // A flag of the server comes before the file.
        let mut client = serve(&hotcell, &["--max-memory", "1g"]);
        let large = facts(&mut client, &hungry(400), json!({ "memory": "800m" }));
        assert_eq!(large["stdout"], "had it\n", "{large}");
        let usual = facts(&mut client, &hungry(100), json!({}));
        assert_eq!(usual["error"]["kind"], "memory", "{usual}");
        fs::remove_file(hotcell.place("home/.config/hotcell/config.toml")).expect("it is there");
    }
}

#[test]
fn the_folder_of_a_server_is_seen_by_every_program_and_named_to_the_model() {
    for hotcell in everyone() {
        hotcell.write("project/in.csv", "a,b\n1,2\n");
        let host = hotcell.place("project").display().to_string();
        let described = |client: &mut Client| {
            let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
            let mut tools = tools.as_array().expect("a list").iter();
            let run = tools.find(|tool| tool["name"] == "run");
            let text = run.expect("the tool")["description"].as_str();
            text.expect("text").to_owned()
        };
        let mut client = serve(&hotcell, &["--workspace", &host]);
        let text = described(&mut client);
        assert!(
            text.contains("no other files of the host")
                && text.ends_with("Folders of the user: /work (read-only)."),
            "{text}"
        );
        let read = facts(&mut client, "print(open('/work/in.csv').read())", json!({}));
        assert_eq!(read["stdout"], "a,b\n1,2\n\n", "{read}");
        let written = facts(&mut client, "open('/work/out.csv', 'w')", json!({}));
        assert_eq!(written["error"]["kind"], "denied", "{written}");
        assert_eq!(
            written["error"]["hint"],
            "Write to the working directory: only the owner of this server can make `/work` writable."
        );
        assert!(!hotcell.place("project/out.csv").exists());

        let mut client = serve(&hotcell, &["--workspace", &format!("{host}:rw")]);
        assert!(described(&mut client).ends_with("Folders of the user: /work (writable)."));
        let written = facts(
            &mut client,
            "open('/work/out.csv', 'w').write('x')",
            json!({}),
        );
        assert_eq!(written["status"], "ok", "{}: {written}", hotcell.name);
        assert_eq!(
            fs::read_to_string(hotcell.place("project/out.csv")).expect("it is there"),
            "x"
        );

        // Control: without it there is no such folder.
        let mut client = serve(&hotcell, &[]);
        assert!(!described(&mut client).contains("Folders"));
        let none = facts(&mut client, "open('/work/in.csv')", json!({}));
        assert!(
            none["stderr"]
                .as_str()
                .expect("text")
                .contains("FileNotFoundError"),
            "{none}"
        );
    }
}

#[test]
fn a_file_in_the_folder_that_is_closed_to_the_sandbox_has_a_hint() {
    let Some(hotcell) = everyone().into_iter().find(|it| it.uid != 0) else {
        return;
    };
    let file = hotcell.write("project/closed", "x");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o000))
        .expect("a mode");
    let host = hotcell.place("project").display().to_string();
    let mut client = serve(&hotcell, &["--workspace", &host]);
    let closed = facts(&mut client, "open('/work/closed')", json!({}));
    assert_eq!(closed["error"]["kind"], "denied", "{closed}");
    assert_eq!(
        closed["error"]["hint"],
        "Ask the user for another file: owner and mode of what is at `/work` keep the sandbox out."
    );
}

#[test]
fn a_server_with_a_wrong_folder_or_limit_does_not_start() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    for (flags, told) in [
        (["--workspace", "/none/such"], "cannot read `/none/such`"),
        (["--workspace", "/proc"], "`/proc` cannot be mounted"),
        (["--max-memory", "much"], "`much` is not a size above zero"),
        (["--timeout", "soon"], "`soon` is not a duration above zero"),
    ] {
        let answer =
            crate::support::Running::start(hotcell.command().arg("serve").args(flags)).finish();
        assert_eq!(answer.code, Some(2), "{flags:?}");
        assert!(answer.err().contains(told), "{flags:?}: {}", answer.err());
    }
}
