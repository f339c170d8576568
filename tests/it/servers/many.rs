//! A thousand tools: what a model is told of them costs little and stays the same, and each is found.

use std::fs;

use serde_json::{Value, json};

use super::{serve, structured};
use crate::mcp::client::Client;
use crate::support::{Hotcell, everyone};

/// Servers `s0`, `s1`, … with so many tools each, of the public benchmark in `tests/data`.
fn configure(hotcell: &Hotcell, servers: usize, each: usize, more: &str) {
    let script = hotcell.write("many.py", include_str!("../../servers/many.py"));
    let tools = hotcell.write("tools.jsonl", include_str!("../../data/tools.jsonl"));
    let mut config = String::new();
    for at in 0..servers {
        config += &format!(
            "[servers.s{at}]\ncommand = 'python3'\nargs = [{script:?}, {tools:?}, '{}', '{each}']\n{more}\n",
            at * each
        );
    }
    hotcell.write("home/.config/hotcell/config.toml", config);
}

fn tools(client: &mut Client) -> Vec<Value> {
    let listed = client.request("tools/list", json!({}));
    listed["result"]["tools"].as_array().expect("tools").clone()
}

/// The tools once so many servers have told theirs.
fn known_tools(client: &mut Client, servers: usize) -> Vec<Value> {
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    loop {
        let listed = tools(client);
        let run = find(&listed, "run").expect("it")["description"].to_string();
        let is_told = |at: usize| {
            let counted = format!("s{at}(");
            let named = run.contains(&format!("s{at}.")) || run.contains(&counted);
            named && !run.contains(&format!("{counted}0)"))
        };
        if (0..servers).all(is_told) {
            return listed;
        }
        client.wait(|message| message["method"] == "notifications/tools/list_changed");
    }
}

fn find<'a>(tools: &'a [Value], name: &str) -> Option<&'a Value> {
    tools.iter().find(|tool| tool["name"] == name)
}

/// What a model reads of tools, in tokens of o200k: for texts like these never more than a quarter of the characters.
fn tokens(tools: &[Value]) -> usize {
    let shown = |tool: &Value| {
        json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] })
            .to_string()
            .len()
    };
    tools.iter().map(shown).sum::<usize>().div_ceil(4)
}

fn search(client: &mut Client, query: &str) -> String {
    let arguments = json!({ "name": "search", "arguments": { "query": query } });
    let answer = client.request("tools/call", arguments)["result"].clone();
    assert_eq!(answer["isError"], false, "{answer}");
    answer["content"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned()
}

#[test]
fn p27_thirty_servers_with_five_hundred_tools_are_three_tools_and_all_can_be_called() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell, 30, 17, "");
    let mut client = serve(&hotcell);
    let known = known_tools(&mut client, 30);
    let names: Vec<&Value> = known.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["run", "search", "session"]);
    assert!(tokens(&known) <= 700, "{} tokens", tokens(&known));
    let code = r#"
from mcp import runtime

def some(schema):
    if 'enum' in schema:
        return schema['enum'][0]
    kind = schema.get('type', 'string')
    if kind == 'object':
        return {name: some(schema['properties'][name]) for name in schema.get('required', [])}
    if kind == 'array':
        return [some(schema.get('items', {}))]
    return {'string': 'x', 'integer': 1, 'number': 1, 'boolean': True}[kind]

called = 0
for server in runtime.list_servers_sync():
    for tool in runtime.list_tools_sync(server):
        answer = mcp.call(f"{server}.{tool['name']}", some(tool['input_schema']))
        called += answer['tool'] == tool['name']
print(called)
"#;
    let answer = client.run(json!({ "code": code, "language": "python" }));
    assert_eq!(structured(&answer)["stdout"], "510\n", "{answer}");
}

#[test]
fn a_thousand_tools_cost_a_model_no_more_than_seven_hundred_tokens() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell, 4, 250, "");
    let mut client = serve(&hotcell);
    let known = known_tools(&mut client, 4);
    assert!(tokens(&known) <= 700, "{} tokens", tokens(&known));
    let run = find(&known, "run").expect("it")["description"].as_str();
    let run = run.unwrap_or_default();
    assert!(
        run.ends_with("Find tools with `search`.\nServers: s0(250) s1(250) s2(250) s3(250)"),
        "{run}"
    );
    assert_eq!(tools(&mut client), known, "another list");
    // The next server says the same.
    assert_eq!(known_tools(&mut serve(&hotcell), 4), known);

    let found = search(&mut client, "current price of a stock");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 9, "{found}");
    assert!(
        found.contains("s0.get_current_stock_price({symbol:string}) // "),
        "{found}"
    );
    assert!(lines[8].ends_with(" more fit less well."), "{found}");
    assert!(found.len() < 2500, "{found}");
    let whole = search(&mut client, "s0.get_current_stock_price");
    assert!(
        whole.contains("Example: s0.get_current_stock_price(symbol=\"…\")"),
        "{whole}"
    );
    assert_eq!(search(&mut client, "").lines().count(), 4);
    assert!(search(&mut client, "s3").ends_with(" and 150 more\n"));

    // So is a tool that a program has saved.
    let greets = "# --- tool\n# description = \"Greets somebody\"\n# ---\nprint('Hello')\n";
    hotcell.write("home/.local/share/hotcell/tools/greet.py", greets);
    let found = search(&mut client, "greets somebody");
    assert!(
        found.starts_with("saved.greet() // Greets somebody\n"),
        "{found}"
    );

    // What was found is called.
    let code = "print(s0.get_current_stock_price(symbol='X'))";
    let ran = client.run(json!({ "language": "python", "code": code }));
    let expected = "{'tool': 'get_current_stock_price', 'arguments': {'symbol': 'X'}}\n";
    assert_eq!(structured(&ran)["stdout"], expected, "{ran}");
}

#[test]
fn what_fits_is_shown_in_whole_and_never_costs_more_than_the_rest() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let plain = tokens(&tools(&mut serve(&hotcell)));
    for (count, is_whole) in [(5, true), (40, false)] {
        configure(&hotcell, 1, count, "");
        let known = known_tools(&mut serve(&hotcell), 1);
        let run = find(&known, "run").expect("it")["description"].to_string();
        assert_eq!(
            run.contains("s0.get_current_stock_price("),
            is_whole,
            "{run}"
        );
        assert_eq!(find(&known, "search").is_none(), is_whole, "{run}");
        let cost = tokens(&known) - plain;
        assert!(cost <= 700, "{count} tools cost {cost} tokens");
    }
}

#[test]
fn a_program_searches_the_tools_that_it_may_call() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell, 2, 100, "");
    let mut client = serve(&hotcell);
    let code = r#"
found = mcp.search("current price of a stock", 3)
print(len(found), any(hit["server"] == "s0" and hit["name"] == "get_current_stock_price" for hit in found), found[0]["signature"].count("("))
# s0, s1
"#;
    let mut said = |servers: Value| {
        let ran = client.run(json!({ "language": "python", "code": code, "servers": servers }));
        structured(&ran)["stdout"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(said(json!(["s0", "s1"])), "3 True 1\n");
    assert_eq!(said(json!(["s1"])), "3 False 1\n");
}

#[test]
fn tools_that_come_later_are_told_and_found() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let more = hotcell.place("more");
    configure(
        &hotcell,
        1,
        60,
        &format!("env = {{ MANY_MORE = {more:?} }}"),
    );
    let mut client = serve(&hotcell);
    let before = known_tools(&mut client, 1);
    assert!(!search(&mut client, "gadget").contains("brand_new_gadget"));
    fs::write(&more, "").expect("a file");
    while tools(&mut client) == before {
        client.wait(|message| message["method"] == "notifications/tools/list_changed");
    }
    assert!(search(&mut client, "gadget").starts_with("s0.brand_new_gadget() // Makes a gadget\n"));
}

#[test]
fn a_tool_that_is_exposed_is_a_tool_like_ours() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let expose = "expose = ['get_current_stock_price', 'bing_search', 'no_such_tool']";
    configure(&hotcell, 2, 3, expose);
    let mut client = serve(&hotcell);
    let mut known = known_tools(&mut client, 2);
    // They may have become known while an answer was put together: then the client is told to ask again.
    while find(&known, "bing_search").is_none() {
        client.wait(|message| message["method"] == "notifications/tools/list_changed");
        known = tools(&mut client);
    }
    let names: Vec<&str> = known
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let expected = ["bing_search", "get_current_stock_price", "run", "session"];
    assert_eq!(names, expected);
    let price = find(&known, "get_current_stock_price").expect("it");
    let schema = json!({ "type": "object", "properties": { "symbol": { "type": "string" } }, "required": ["symbol"] });
    assert_eq!(price["inputSchema"], schema);
    let arguments = json!({ "name": "get_current_stock_price", "arguments": { "symbol": "X" } });
    let answer = client.request("tools/call", arguments)["result"].clone();
    let text = r#"{"tool": "get_current_stock_price", "arguments": {"symbol": "X"}}"#;
    let expected = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    assert_eq!(answer, expected);
}
