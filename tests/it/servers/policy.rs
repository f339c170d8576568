//! What programs may do with a server: its owner decides, and what was done is written down.

use serde_json::{Value, json};

use super::{log, run, serve, structured};
use crate::support::{Hotcell, Running, anyone};

const CONFIG: &str = "home/.config/hotcell/config.toml";

fn one_clock(hotcell: &Hotcell, rules: &str) {
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let log = hotcell.write("clock.log", "");
    let config = format!(
        "[servers.clock]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {log:?} }}\n{rules}"
    );
    hotcell.write(CONFIG, config);
}

/// Each is called, under names that a program may give it, and what is refused says how.
const CALLS: &str = r#"
for call in [lambda: clock.text(text="a"), lambda: clock.echoBack(value=1), lambda: mcp.call("clock.echo-back", {"value": 2}), lambda: clock.large(bytes=5)]:
    try:
        print(call())
    except ToolError as error:
        print(error.kind, error)
"#;

#[test]
fn a_tool_that_is_not_granted_is_refused_whatever_the_code_says() {
    let Some(hotcell) = anyone() else { return };
    let refused = |name: &str, why: &str| {
        format!("denied clock.{name}: this is not allowed: {why} `[servers.clock]` in config.toml")
    };
    let grant = |tool: &str| format!("to grant it, add \"{tool}\" to `allow` of");
    let deny = |tool: &str| format!("`deny` of `[servers.clock]` in config.toml names `{tool}`");
    let plain =
        |name: &str, why: String| format!("denied clock.{name}: this is not allowed: {why}");
    for (rules, expected) in [
        // Control: what is refused below works.
        (
            "",
            [
                "a".to_owned(),
                "{'value': 1}".to_owned(),
                "{'value': 2}".to_owned(),
                "xxxxx".to_owned(),
            ],
        ),
        (
            "deny = ['echo-*']",
            [
                "a".to_owned(),
                plain("echoBack", deny("echo-back")),
                plain("echo-back", deny("echo-back")),
                "xxxxx".to_owned(),
            ],
        ),
        (
            "allow = ['text', 'echo-back']\ndeny = ['text']",
            [
                plain("text", deny("text")),
                "{'value': 1}".to_owned(),
                "{'value': 2}".to_owned(),
                refused("large", &grant("large")),
            ],
        ),
        (
            "ask = ['*']\nallow = ['text']",
            [
                "a".to_owned(),
                refused("echoBack", &grant("echo-back")),
                refused("echo-back", &grant("echo-back")),
                refused("large", &grant("large")),
            ],
        ),
    ] {
        one_clock(&hotcell, rules);
        let result = run(&hotcell, &["-l", "python", "-c", CALLS]);
        let said: Vec<&str> = result["stdout"]
            .as_str()
            .unwrap_or_default()
            .lines()
            .collect();
        assert_eq!(said, expected, "{rules}: {result}");
        let calls = log(&hotcell, "clock.log").matches("call ").count();
        let made = expected
            .iter()
            .filter(|it| !it.starts_with("denied"))
            .count();
        assert_eq!(calls, made, "{rules}: the server was called");
    }
}

#[test]
fn a_run_is_held_to_its_budget_and_a_call_to_its_time() {
    let Some(hotcell) = anyone() else { return };
    one_clock(&hotcell, "calls = 3\nbytes = '1k'\ntimeout = '1s'");
    let code = r#"
def each(*calls):
    for call in calls:
        try:
            print(str(call())[:9])
        except ToolError as error:
            print(error.kind, error)
each(lambda: clock.wait(seconds=60), lambda: clock.text(text="one"), lambda: clock.text(text="two"), lambda: clock.text(text="three"))
"#;
    let expected = "timeout clock.wait: it took longer than 1 s (`timeout`)\none\ntwo\n\
        denied clock.text: this is not allowed: a run may call this server 3 times (`calls`)\n";
    // Each run has its own.
    for _ in 0..2 {
        let result = run(&hotcell, &["-l", "python", "-c", code]);
        assert_eq!(result["stdout"], expected, "{result}");
    }
    let more = "\ntry:\n    clock.text(text='more')\nexcept ToolError as error:\n    print(error.kind, error)\n";
    let large = format!("print(len(clock.large(bytes=2000))){more}");
    let result = run(&hotcell, &["-l", "python", "-c", &large]);
    let expected = "2000\ndenied clock.text: this is not allowed: a run may exchange 1024 bytes with this server (`bytes`)\n";
    assert_eq!(result["stdout"], expected, "{result}");
}

#[test]
fn nobody_is_told_of_a_tool_that_is_always_refused() {
    let Some(hotcell) = anyone() else { return };
    let code = "import mcp\nprint('large' in dir(clock), 'text' in dir(clock), 'clock.large' in str(mcp.search('large text')))";
    for (rules, is_shown) in [
        ("", true),
        ("ask = ['large']", true),
        ("deny = ['large']", false),
        ("allow = ['text']", false),
    ] {
        one_clock(&hotcell, rules);
        let mut client = serve(&hotcell);
        let result = client.run(json!({ "language": "python", "code": code }));
        let is_shown_to_code = if is_shown { "True" } else { "False" };
        assert_eq!(
            structured(&result)["stdout"],
            format!("{is_shown_to_code} True {is_shown_to_code}\n"),
            "{rules}: {result}"
        );
        let listed = client.request("tools/list", json!({})).to_string();
        assert_eq!(
            listed.contains("clock.large("),
            is_shown,
            "{rules}: {listed}"
        );
        assert!(listed.contains("clock.text("), "{rules}: {listed}");
    }
}

#[test]
fn every_call_is_in_the_record_of_its_run_without_what_was_said() {
    let Some(hotcell) = anyone() else { return };
    one_clock(&hotcell, "deny = ['large']");
    let mut client = serve(&hotcell);
    let code = "clock.text(text='very private words')\nfor tool in ['large', 'fail']:\n    try:\n        mcp.call('clock.' + tool)\n    except ToolError:\n        pass\n";
    let result = client.run(json!({ "language": "python", "code": code }));
    assert_eq!(structured(&result)["status"], "ok", "{result}");
    assert!(
        structured(&result)["calls"].is_null(),
        "a model does not need it: {result}"
    );
    let told = result["_meta"]["dev.hotcell/run"]["calls"]["list"].clone();
    client.close();
    let shown = Running::start(hotcell.command().args(["logs", "--json"])).finish();
    let recorded: Value = serde_json::from_str(&shown.out()).expect("one record");
    assert_eq!(recorded["result"]["calls"]["list"], told, "{recorded}");
    let call = |at: usize| -> Vec<Value> {
        let call = &told[at];
        ["server", "tool", "outcome"]
            .map(|name| call[name].clone())
            .to_vec()
    };
    assert_eq!(
        call(0),
        [json!("clock"), json!("text"), json!("ok")],
        "{told}"
    );
    assert_eq!(
        call(1),
        [json!("clock"), json!("large"), json!("denied")],
        "{told}"
    );
    assert_eq!(
        call(2),
        [json!("clock"), json!("fail"), json!("tool")],
        "{told}"
    );
    assert_eq!(told[0]["arguments"].as_str().map(str::len), Some(64));
    assert_eq!(told[0]["sent"], 30, "{told}");
    assert_eq!(told[0]["received"], 60, "{told}");
    assert!(told[0]["duration_ms"].as_f64() > Some(0.0));
}
