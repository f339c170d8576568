//! Where the mode finds servers by itself: where the server that it replaces did, and only if the owner does not forbid it.

use serde_json::json;

use super::defects::{said, serve};
use crate::support::{Hotcell, anyone};

/// A server of this name in a file of the home.
fn configure(hotcell: &Hotcell, path: &str, name: &str) {
    let script = hotcell.write("studio.py", include_str!("../../servers/studio.py"));
    let entry = json!({ "command": "python3", "args": [script, name], "description": format!("from {path}") });
    let text = json!({ "mcpServers": { name: entry } }).to_string();
    hotcell.write(path, text);
}

const LIST: &str = "print(*sorted(runtime.discovered_servers()))";

#[test]
fn servers_are_found_where_the_replaced_server_finds_them_and_nowhere_else() {
    let Some(hotcell) = anyone() else { return };
    configure(&hotcell, "home/MCPs/one.json", "one");
    configure(&hotcell, "home/elsewhere.json", "two");
    configure(&hotcell, "home/state/three.json", "three");
    configure(&hotcell, "home/.cursor/mcp.json", "four");
    configure(&hotcell, "home/.mcp.json", "project");
    let list = |variables: &[(&str, &str)]| said(&mut serve(&hotcell, variables), LIST);
    let elsewhere = hotcell.place("home/elsewhere.json");
    let elsewhere = elsewhere.to_str().expect("a path");
    assert_eq!(list(&[]), "one\n");
    let named = ("MCP_SERVERS_CONFIG", elsewhere);
    assert_eq!(list(&[named]), "one two\n");
    let moved = ("MCP_BRIDGE_STATE_DIR", "~/state");
    assert_eq!(list(&[moved]), "three\n");
    // What is saved is there too.
    let saved = said(
        &mut serve(&hotcell, &[moved]),
        "def f():\n    return 1\nsave_tool(f)",
    );
    assert!(saved.contains("Tool 'f' saved."), "{saved}");
    assert!(hotcell.place("home/state/tools/f.py").is_file());

    let detailed = "print(runtime.discovered_servers(detailed=True))";
    let described = said(&mut serve(&hotcell, &[]), detailed);
    assert_eq!(
        described,
        "({'name': 'one', 'description': 'from home/MCPs/one.json'},)\n"
    );

    // Control: what is found is called; and everybody's files are read where that is allowed.
    let called = said(&mut serve(&hotcell, &[]), "print(one.say(text='called'))");
    assert_eq!(called, "called\n");
    let config = "home/.config/hotcell/config.toml";
    hotcell.write(config, "[servers]\ndiscover = true\n");
    assert_eq!(list(&[]), "four one\n");
    // The owner's word comes first.
    hotcell.write(config, "[servers]\ndiscover = false\n");
    assert_eq!(list(&[named]), "\n");
    // Who is not in that mode reads none of these.
    hotcell.write(config, "");
    let result = hotcell.json(&["-l", "python", "-c", "print('one' in globals())"]);
    assert_eq!(result["stdout"], "False\n", "{result}");
}

#[test]
fn c9_an_entry_that_starts_the_bridge_is_left_out_unless_that_is_wanted() {
    let Some(hotcell) = anyone() else { return };
    configure(&hotcell, "home/MCPs/one.json", "one");
    let entries = json!({ "mcpServers": {
        "bridge": { "command": "uvx", "args": ["--from", "git+somewhere", "mcp-server-code-execution-mode", "run"] },
        "me": { "command": env!("CARGO_BIN_EXE_hotcell"), "args": ["serve", "--as", "code-execution-mode"] },
    } });
    hotcell.write("home/MCPs/two.json", entries.to_string());
    assert_eq!(said(&mut serve(&hotcell, &[]), LIST), "one\n");
    let wanted = [("MCP_BRIDGE_ALLOW_SELF_SERVER", "Yes")];
    assert_eq!(said(&mut serve(&hotcell, &wanted), LIST), "bridge me one\n");
}
