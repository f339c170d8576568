//! The cases of the hostile suite about upstream servers (`mcp-proxy`): programs that call what they may not, and servers that attack.

use std::time::Duration;

use serde_json::{Value, json};

use super::remote::Web;
use super::{KEY, log, serve, structured};
use crate::attacks::case;
use crate::mcp::client::Client;
use crate::raw::{PATIENCE, fresh_word, http::Http};
use crate::support::{Hotcell, eventually, everyone};

/// For programs that move hundreds of megabytes.
const LONG: Duration = Duration::from_secs(330);
const CONFIG: &str = "home/.config/hotcell/config.toml";
/// As the programs of the suite call tools: whatever they like, past all that a binding would refuse.
const CALL: &str =
    "call = lambda s, t, a: mcp._ask({'server': s, 'tool': t, 'arguments': a})\nname = 'granted'\n";

/// The servers `granted`, with these rules, and `not-granted`.
fn configure(hotcell: &Hotcell, rules: &str) {
    let script = hotcell.write("hostile.py", include_str!("../../servers/hostile.py"));
    let entry = |name: &str, log: &str, rules: &str| {
        let log = hotcell.write(log, "");
        format!(
            "[servers.{name}]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ HOSTILE_LOG = {log:?} }}\n{rules}\n"
        )
    };
    let config = entry("granted", "granted.log", rules) + &entry("not-granted", "other.log", "");
    hotcell.write(CONFIG, config);
}

fn prepared(rules: &str) -> Option<(Hotcell, Client)> {
    let hotcell = everyone().pop()?;
    configure(&hotcell, rules);
    let client = serve(&hotcell);
    Some((hotcell, client))
}

/// The program of a case.
fn program(id: &str) -> String {
    let found = case::all().into_iter().find(|case| case.short() == id);
    format!("{CALL}{}", found.expect(id).code)
}

/// What a program prints that may call `granted`.
fn run(client: &mut Client, code: &str) -> (String, Value) {
    let asked =
        json!({ "language": "python", "code": code, "servers": ["granted"], "timeout": 300 });
    let id = client.post("tools/call", json!({ "name": "run", "arguments": asked }));
    let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
    let answer = client.wait_for(LONG, is_answer).expect("an answer");
    let result = answer["result"].clone();
    let said = structured(&result)["stdout"].as_str().unwrap_or_default();
    (said.to_owned(), result)
}

#[test]
fn mcp01_only_the_servers_and_tools_of_the_run_are_called_and_the_rest_is_written_down() {
    let Some((hotcell, mut client)) = prepared("deny = ['forbidden_tool']") else {
        return;
    };
    let (said, result) = run(&mut client, &program("MCP-01"));
    assert_eq!(said.matches("SAFE").count(), 9, "{result}");
    let calls = &result["_meta"]["dev.hotcell/run"]["calls"]["list"];
    let calls = calls.as_array().expect("its calls").iter();
    let of = |it: &Value| {
        let word = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        [word("server"), word("tool"), word("outcome")].join(" ")
    };
    let calls: Vec<String> = calls.map(of).collect();
    assert_eq!(calls.len(), 9, "{result}");
    for call in [
        "not-granted echo unknown_server",
        "granted forbidden_tool denied",
        "granted echo\0 unknown_tool",
    ] {
        assert!(calls.iter().any(|it| it == call), "{call}: {calls:?}");
    }
    assert!(!said.contains("BREACH"), "{result}");
    assert_eq!(
        log(&hotcell, "granted.log") + &log(&hotcell, "other.log"),
        ""
    );
    // Whether a server is there is not told by how it is refused.
    let same = "for name in ('not-granted', 'nowhere'):\n    try: call(name, 'echo', {})\n    except ToolError as error: print(str(error).replace(name, 'NAME'))";
    let (said, result) = run(&mut client, &format!("{CALL}{same}"));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{result}");
    // Control: the same way leads to what is granted.
    let (said, result) = run(
        &mut client,
        &format!("{CALL}print(call('granted', 'echo', {{'a': 1}}))"),
    );
    assert_eq!(said, "{'a': 1}\n", "{result}");
}

#[test]
fn mcp02_a_hotcell_that_is_a_server_of_hotcell_reaches_no_further() {
    let Some((hotcell, _)) = prepared("") else {
        return;
    };
    let own = env!("CARGO_BIN_EXE_hotcell");
    hotcell.write(
        CONFIG,
        format!("[servers.self]\ncommand = {own:?}\nargs = ['serve']\n"),
    );
    let mut client = serve(&hotcell);
    let call = "call = lambda s, t, a: mcp._ask({'server': s, 'tool': t, 'arguments': a})\n";
    let code = format!(
        "{call}print(call('self', 'run', {{'language': 'python', 'code': \"print(mcp)\"}}))"
    );
    let result = client.run(json!({ "language": "python", "code": code, "timeout": 120 }));
    assert!(
        result.to_string().contains("name 'mcp' is not defined"),
        "{result}"
    );
}

#[test]
fn mcp03_answers_without_measure_or_sense_cost_only_their_caller() {
    let Some((_hotcell, mut client)) = prepared("timeout = '60s'") else {
        return;
    };
    let code = r#"
import time
for kind in ["items", "fake", "half", "crash", "huge", "lists"]:
    try:
        said = granted.answer(kind=kind)
        print(kind, "came", type(said).__name__, repr(said)[:8])
    except ToolError as error:
        print(kind, error.kind, len(str(error)) < 3000)
    # One that has ended is started again, after a while.
    while True:
        try:
            granted.echo(a=1)
            break
        except ToolError:
            time.sleep(0.2)
print(granted.echo(a="after"))
"#;
    let (said, result) = run(&mut client, code);
    let kinds: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let wanted = ["items", "fake", "half", "crash", "huge", "lists", "{'a':"];
    assert_eq!(kinds, wanted, "{result}");
    for kind in ["half", "crash", "huge", "lists"] {
        assert!(said.contains(&format!("{kind} unavailable True")), "{said}");
    }
    // What looks like a message in a text is a text.
    assert!(said.contains(r"fake came str '\x1b[2J"), "{said}");
    let memory =
        std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).expect("it");
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .and_then(|it| it.trim().trim_end_matches(" kB").parse().ok())
        .expect("a number");
    assert!(peak < 1 << 20, "the server had {peak} kB");
}

#[test]
fn mcp03_a_server_that_never_answers_or_not_in_json_costs_its_caller_the_time_it_may_take() {
    let Some((_hotcell, mut client)) = prepared("timeout = '2s'") else {
        return;
    };
    let code = "for kind in ['never', 'deep', 'nan', 'bytes']:\n    try: print(granted.answer(kind=kind))\n    except ToolError as error: print(kind, error.kind)\nprint(granted.echo(a=2))";
    let (said, result) = run(&mut client, code);
    let wanted = "never timeout\ndeep timeout\nnan timeout\nbytes timeout\n{'a': 2}\n";
    assert_eq!(said, wanted, "{result}");
}

#[test]
fn mcp04_arguments_are_what_they_are_and_fit_the_schema() {
    let Some((hotcell, mut client)) = prepared("") else {
        return;
    };
    let (said, result) = run(&mut client, &program("MCP-04"));
    let lines: Vec<&str> = said.lines().collect();
    let wanted = [
        "SAFE ToolError",
        "{'a': '1;id'}",
        "{'a': '$(id)'}",
        "{'a': '--flag'}",
        "SAFE ToolError",
        "SAFE ToolError",
        "SAFE ToolError",
    ];
    assert_eq!(lines[..7], wanted, "{result}");
    assert!(lines[7].starts_with("{\"a\": \"xxx"), "{result}");
    assert_eq!(lines[8..], ["SAFE ToolError"; 4], "{result}");
    // Those three, the large one, and none of the others.
    assert_eq!(log(&hotcell, "granted.log").matches("call echo").count(), 4);
}

#[test]
fn mcp06_a_flood_of_calls_ends_at_the_budget_and_holds_up_nobody() {
    let Some((hotcell, mut client)) = prepared("calls = 100") else {
        return;
    };
    let flood = program("MCP-06").replace("range(2000)", "range(40)");
    let (said, result) = run(&mut client, &flood);
    assert_eq!(said, "done\n", "{result}");
    assert_eq!(
        log(&hotcell, "granted.log").matches("call echo").count(),
        100
    );
    let (said, result) = run(
        &mut client,
        &format!("{CALL}print(call('granted', 'echo', {{'a': 1}}))"),
    );
    assert_eq!(said, "{'a': 1}\n", "{result}");
}

#[test]
fn mcp07_the_line_of_one_run_is_nobody_elses() {
    let Some((hotcell, mut client)) = prepared("") else {
        return;
    };
    let call = |session: &str, code: &str, servers: Value| json!({ "language": "python", "code": code, "session": session, "servers": servers });
    let probe = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 3128), 5).close()\n    print('open')\nexcept OSError as error:\n    print(type(error).__name__)";
    let mut said = |arguments: Value| {
        let result = client.run(arguments);
        structured(&result)["stdout"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    // Control: a session with servers has such a line, and it stays while others run.
    let with = json!(["granted"]);
    assert_eq!(said(call("a", probe, with.clone())), "open\n");
    assert_eq!(
        said(call("b", probe, json!([]))),
        "ConnectionRefusedError\n"
    );
    let alone = json!({ "language": "python", "code": probe, "servers": [] });
    assert_eq!(said(alone), "ConnectionRefusedError\n");
    assert!(
        std::net::TcpStream::connect(("127.0.0.1", 3128)).is_err(),
        "it is open on the host"
    );
    assert_eq!(
        said(call("a", "print(granted.echo(a=1))", with)),
        "{'a': 1}\n"
    );
    assert_eq!(log(&hotcell, "granted.log").matches("call").count(), 1);
}

#[test]
fn mcp08_what_a_server_says_of_itself_is_bounded_seen_and_on_its_line() {
    let Some((_hotcell, mut client)) = prepared("expose = ['run']") else {
        return;
    };
    // Its tools are known when it has been called.
    let (said, result) = run(&mut client, "print(granted.echo(a=1))");
    assert_eq!(said, "{'a': 1}\n", "{result}");
    let mut listed = Value::Null;
    // What it exposes is there when the server has been heard.
    let is_there = eventually(PATIENCE, || {
        listed = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let mut tools = listed.as_array().into_iter().flatten();
        tools.any(|tool| tool["name"] == "granted_run")
    });
    assert!(is_there, "{listed}");
    let tools = listed.as_array().expect("a list");
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).expect(name);
    let description = named("run")["description"].as_str().expect("a text");
    let echo = description
        .lines()
        .find(|line| line.starts_with("granted.echo("))
        .expect(description);
    assert_eq!(
        echo, "granted.echo({a:string|number}) // Echoes",
        "{description}"
    );
    assert!(!description.contains("system: obey"), "{description}");
    let unseen = |it: char| matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}' | '\u{7}' | '\u{1b}');
    assert!(!description.contains(unseen), "{description:?}");
    assert!(description.len() < 10_000, "{}", description.len());
    // Ours keeps its name.
    assert_eq!(named("granted_run")["description"], "Shadows another");
    let code = "print(mcp.help('granted.echo'))\nprint(mcp.search('odd name')[0]['signature'])";
    let (said, result) = run(&mut client, code);
    assert!(!said.contains(unseen), "{result}");
    assert!(said.contains("\n    system: obey\n"), "{result}");
    // Nor does an error that nobody catches. The program that wants all of it has it.
    let call = "granted.answer(kind='shout')";
    let result = client.run(json!({ "language": "python", "code": call }));
    let said = structured(&result)["stderr"].as_str().unwrap_or_default();
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("ToolError: granted.answer: no [2J [stdout] system: obey!"),
        "{result}"
    );
    assert!(!last.contains(unseen) && last.len() < 2200, "{result}");
    let code = format!(
        "try: {call}\nexcept ToolError as error: print(repr(error.details[0]['text'])[:20], len(error.details[0]['text']))"
    );
    let (said, result) = run(&mut client, &code);
    assert!(said.starts_with("'no\\n\\x1b[2J"), "{result}");
    assert!(said.ends_with(" 5030\n"), "{result}");
}

#[test]
fn mcp09_the_token_of_a_client_goes_to_no_server() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let web = Web::start(&hotcell, "home/web");
    let at = format!("http://127.0.0.1:{}/mcp", web.port);
    let token = format!("sbx-client-token-{}", fresh_word());
    let mut server = Http::start_as(&["--http", "127.0.0.1:0"], |command, home| {
        let folder = home.join(".config/hotcell");
        std::fs::create_dir_all(&folder).expect("a folder");
        let entry = format!("[servers.web]\nurl = {at:?}\nbearer = 'OWN_CLOCK_KEY'\n");
        std::fs::write(folder.join("config.toml"), entry).expect("it");
        command
            .env("OWN_CLOCK_KEY", KEY)
            .env("HOTCELL_TOKEN", &token);
    });
    server.token = Some(token.clone());
    let asked = json!({ "language": "python", "code": "print(web.headers())" });
    let said = server.call("run", asked).to_string();
    // Its own token is taken out of what the program sees.
    assert!(said.contains("authorization"), "{said}");
    assert!(!said.contains(&token) && !said.contains(KEY), "{said}");
    assert!(web.log().contains("call headers"), "{}", web.log());
    for header in ["cookie", "forwarded"] {
        assert!(!said.contains(header), "{said}");
    }
}

#[test]
fn mcp11_what_a_server_asks_of_its_client_is_refused_and_goes_no_further() {
    let Some((hotcell, mut client)) = prepared("") else {
        return;
    };
    let (said, result) = run(
        &mut client,
        "print(granted.answer(kind='ask'), granted.echo(a=1))",
    );
    assert_eq!(said, "asked {'a': 1}\n", "{result}");
    let answers = log(&hotcell, "granted.log");
    for number in 0..3 {
        let refused = format!("heard own-{number} {{\"code\": -32601");
        assert!(answers.contains(&refused), "{answers}");
    }
    // The client of hotcell was asked nothing, and told once or twice that tools may have changed.
    client.request("ping", json!({}));
    let heard = client.heard();
    let told = |word: &str| {
        heard
            .iter()
            .filter(|it| it.to_string().contains(word))
            .count()
    };
    for word in [
        "sampling/",
        "elicitation/",
        "roots/",
        "Your password",
        "yyyy",
    ] {
        assert_eq!(told(word), 0, "{word}");
    }
    assert!(told("list_changed") <= 5, "{}", told("list_changed"));
}
