//! What clients and owners are told of the servers.

use std::process::Command;

use serde_json::{Value, json};

use super::{KEY, configure, serve};
use crate::mcp::client::Client;
use crate::support::{Running, everyone};

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
        "No servers are configured (see `hotcell help servers`).\n"
    );
    assert_eq!(none.code, Some(0));

    configure(&hotcell);
    let all = list(&[]);
    assert_eq!(all.code, Some(1));
    let expected = "clock: 9 tools\n  OWN_CLOCK_KEY is not set\n  clock.wait({seconds:number, note?:string}) // Waits\n";
    assert!(all.out().contains(expected), "{}", all.out());
    assert!(
        all.out()
            .contains("gone: the server is not available: its program (`command`) was not found\n"),
        "{}",
        all.out()
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
        "Other Clock: 9 tools\nclock: 9 tools\ngone: no tools known yet; `hotcell servers check` asks for them\n"
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
