use super::*;

fn client(name: &str) -> &'static Client {
    Client::named(name).unwrap()
}

fn program() -> Reach {
    Reach::Program(["/opt/bin/hotcell", "serve"].map(str::to_owned).to_vec())
}

fn address() -> Reach {
    Reach::address(([127, 0, 0, 1], 3917).into(), "hotcell-0123456789abcdef")
}

fn added(name: &str, text: &str, reach: &Reach) -> Result<String, Unclear> {
    let client = client(name);
    client.add(text, &client.entry(reach).unwrap())
}

/// What each client's file looks like in real life, and nothing in it may change.
const FILES: [(&str, &str); 19] = [
    (
        "claude-code",
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  },\n  \"projects\": {}\n}\n",
    ),
    (
        "claude-code",
        "{\"numStartups\":3,\"mcpServers\":{\"other\":{\"command\":\"x\"}},\"projects\":{}}",
    ),
    ("claude-code", "{\"a\": 1, \"mcpServers\": {}}"),
    (
        "claude-desktop",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": { \"command\": \"x\", \"args\": [\"-y\", \"}\"] }\r\n\t}\r\n}\r\n",
    ),
    (
        "cursor",
        "\u{feff}{\n    \"mcpServers\": {\n        \"a\": { \"url\": \"https://a.test//x\" }, // mine\n        \"b\": { \"command\": \"y\" } /* yours */\n    }\n}",
    ),
    (
        "vscode",
        "{\n\t// servers of the team\n\t\"servers\": {\n\t\t\"a\": { \"type\": \"stdio\", \"command\": \"x\", },\n\t},\n\t\"inputs\": [],\n}\n",
    ),
    ("vscode", "{ // nothing yet\n}\n"),
    ("windsurf", "{\n  \"mcpServers\": {\n    // none\n  }\n}\n"),
    ("cline", "{\n  \"mcpServers\": {\n  }\n}\n"),
    (
        "zed",
        "// Zed\n//\n{\n  \"theme\": \"One\", // dark\n  \"ui\": { \"size\": 16 }\n  // the end\n}\n",
    ),
    ("gemini", "{\n  \"security\": { \"auth\": \"x\\\"{\" }\n}"),
    (
        "opencode",
        "{\n  \"$schema\": \"https://x.test/config.json\",\n  \"mcp\": { \"a\": { \"type\": \"local\", \"command\": [\"x\"] } }\n}\n",
    ),
    (
        "codex",
        "# mine\nmodel = \"x\" # best\n\n[mcp_servers.other]\ncommand = 'y'\nargs = [\n  \"[z]\", # why\n]\n",
    ),
    (
        "codex",
        "[mcp_servers.other]\r\ncommand = 'y'\r\n\r\n# the last\r\n[tui]\r\nx = 1\r\n",
    ),
    ("codex", "\u{feff}model = \"x\"\n"),
    ("codex", ""),
    (
        "goose",
        "# Goose\nGOOSE_MODEL: x\nextensions:\n  developer: # built in\n    enabled: true\n    args:\n    - a\n\n  other:\n    cmd: \"hotcell: no\"\n# after\nGOOSE_PROVIDER: y\n",
    ),
    ("goose", "---\nGOOSE_MODEL: x\r\nlist:\r\n- a\r\n"),
    ("goose", ""),
];

#[test]
fn an_entry_is_added_and_removed_and_every_other_byte_stays() {
    for (name, text) in FILES {
        for reach in [program(), address()] {
            let Some(entry) = client(name).entry(&reach) else {
                continue;
            };
            let new = client(name).add(text, &entry).unwrap();
            // With a comma or a space between, all that was there is there in its order.
            let mut rest = new.chars();
            assert!(
                text.chars().all(|letter| rest.any(|it| it == letter)),
                "{name}\n{text}\n{new}"
            );
            assert_eq!(
                client(name).add(&new, &entry).unwrap(),
                new,
                "{name}: twice"
            );
            let removed = client(name).remove(&new).unwrap();
            let key = client(name).key;
            let lone = |text: &str| {
                let all: String = text.chars().filter(|it| !it.is_whitespace()).collect();
                all.replace(&format!(",\"{key}\":{{}}"), "")
            };
            match text.contains(key) || name == "codex" || name == "goose" {
                true if !text.contains("{\n  }") => assert_eq!(removed, text, "{name}"),
                _ => assert_eq!(
                    lone(&removed).replace(&format!("\"{key}\":{{}}"), ""),
                    lone(text).replace(&format!("\"{key}\":{{}}"), ""),
                    "{name}: {removed}"
                ),
            }
            assert_eq!(
                client(name).remove(text).unwrap(),
                text,
                "{name}: nothing to remove"
            );
        }
    }
}

#[test]
fn what_is_added_looks_like_its_surroundings() {
    let new = added("claude-code", FILES[0].1, &program()).unwrap();
    assert_eq!(
        new,
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    },\n    \"hotcell\": {\n      \"type\": \"stdio\",\n      \"command\": \"/opt/bin/hotcell\",\n      \"args\": [\n        \"serve\"\n      ]\n    }\n  },\n  \"projects\": {}\n}\n"
    );
    let new = added("claude-code", FILES[1].1, &program()).unwrap();
    assert!(new.contains(r#"{"command":"x"},"hotcell":{"type":"stdio","command":"/opt/bin/hotcell","args":["serve"]}},"projects""#), "{new}");
    let new = added("cursor", FILES[4].1, &program()).unwrap();
    assert!(new.starts_with('\u{feff}') && new.contains("{ \"command\": \"y\" }, /* yours */\n        \"hotcell\": {\n            \"command\""), "{new}");
    let new = added("claude-desktop", FILES[3].1, &program()).unwrap();
    assert!(
        new.contains("},\r\n\t\t\"hotcell\": {\r\n\t\t\t\"command\": "),
        "{new:?}"
    );
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
    let new = added("vscode", FILES[5].1, &program()).unwrap();
    assert!(new.contains("]\n\t\t},\n\t},\n\t\"inputs\""), "{new}");
    let new = added("codex", "", &address()).unwrap();
    assert_eq!(
        new,
        "[mcp_servers.hotcell]\nurl = \"http://127.0.0.1:3917/mcp\"\nhttp_headers = { Authorization = \"Bearer hotcell-0123456789abcdef\" }\n"
    );
    let new = added("goose", FILES[16].1, &program()).unwrap();
    assert!(new.contains("    cmd: \"hotcell: no\"\n  hotcell:\n    type: \"stdio\"\n    name: \"hotcell\"\n    enabled: true\n    cmd: \"/opt/bin/hotcell\"\n    args: [\"serve\"]\n    timeout: 300\n# after\n"), "{new}");
}

#[test]
fn of_an_older_entry_what_is_not_ours_stays() {
    let old = "{\"mcpServers\": {\"hotcell\": {\"command\": \"/old\", \"args\": [\"serve\"], \"env\": {\"A\": \"1\"}, \"disabled\": true}, \"b\": {}}}";
    let new = added("cursor", old, &address()).unwrap();
    let read: Value = serde_json::from_str(&new).unwrap();
    let expected = json!({ "env": { "A": "1" }, "disabled": true, "url": "http://127.0.0.1:3917/mcp", "headers": { "Authorization": "Bearer hotcell-0123456789abcdef" } });
    assert_eq!(read["mcpServers"]["hotcell"], expected);
    let back = added("cursor", &new, &program()).unwrap();
    let read: Value = serde_json::from_str(&back).unwrap();
    assert_eq!(read["mcpServers"]["hotcell"]["args"], json!(["serve"]));
    assert_eq!(read["mcpServers"]["hotcell"].get("url"), None);

    let old = "[mcp_servers.hotcell]\n# slow here\nstartup_timeout_sec = 20\ncommand = \"/old\"\nargs = [\n  \"serve\",\n]\n\n[mcp_servers.hotcell.env]\nA = \"1\"\n";
    let new = added("codex", old, &program()).unwrap();
    assert_eq!(
        new,
        "[mcp_servers.hotcell]\ncommand = \"/opt/bin/hotcell\"\nargs = [\"serve\"]\n# slow here\nstartup_timeout_sec = 20\n\n[mcp_servers.hotcell.env]\nA = \"1\"\n"
    );
    assert_eq!(client("codex").remove(&new).unwrap(), "");

    let old = "extensions:\n    hotcell:\n        cmd: /old\n        args:\n        - serve\n        envs:\n            A: '1'\n        timeout: 9\n";
    let new = added("goose", old, &address()).unwrap();
    assert!(
        new.starts_with("extensions:\n    hotcell:\n        type: \"streamable_http\"\n"),
        "{new}"
    );
    assert!(
        new.ends_with("\n        timeout: 300\n        envs:\n            A: '1'\n")
            && !new.contains("/old"),
        "{new}"
    );
    assert_eq!(client("goose").remove(&new).unwrap(), "");
}

#[test]
fn a_file_that_cannot_be_understood_is_left_alone() {
    for (name, text) in [
        ("cursor", "nonsense"),
        ("cursor", "{\"mcpServers\": {}"),
        ("cursor", "[]"),
        ("cursor", "{\"mcpServers\": []}"),
        ("cursor", "{\"mcpServers\": null}"),
        ("cursor", "{\"mcpServers\": {\"hotcell\": 5}}"),
        ("cursor", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        (
            "cursor",
            "{\"mcpServers\": {\"hotcell\": {}, \"hotcell\": {}}}",
        ),
        ("cursor", "{a: 1}"),
        ("cursor", "{'a': 1}"),
        ("codex", "[["),
        ("codex", "mcp_servers = 5"),
        ("codex", "mcp_servers = { a = { command = \"x\" } }"),
        ("codex", "[mcp_servers]\nhotcell = { command = \"x\" }\n"),
        ("goose", "{extensions: {}}"),
        ("goose", "extensions: {a: {}}"),
        ("goose", "extensions: &x\n  a: 1\n"),
        ("goose", "extensions:\n- a\n"),
        ("goose", "- a\n- b\n"),
        ("goose", "extensions:\n\ta: 1\n"),
        ("goose", "a: 1\n---\nb: 2\n"),
        ("goose", "extensions:\n  a: 1\nextensions:\n  b: 1\n"),
        ("goose", "extensions:\n  hotcell: {}\n"),
        ("goose", "\"extensions\":\n  a: 1\n"),
        ("goose", "text"),
    ] {
        let refused = added(name, text, &program());
        assert!(refused.is_err(), "{name}: {text}\n{refused:?}");
    }
    // Deeper than anybody's file: refused, and not by a crash.
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(added("cursor", &deep, &program()).is_err());
}

#[test]
fn files_are_where_their_clients_look() {
    let home = tempfile::tempdir().unwrap();
    let own = |name: &str| (name == "HOME").then(|| home.path().display().to_string());
    let shown = |client: &Client| {
        let path = client.path(&own).unwrap();
        let path = path.strip_prefix(home.path()).unwrap().to_owned();
        path.display().to_string()
    };
    assert_eq!(shown(client("vscode")), ".config/Code/User/mcp.json");
    std::fs::create_dir_all(home.path().join(".config/Code - Insiders/User")).unwrap();
    assert_eq!(
        shown(client("vscode")),
        ".config/Code - Insiders/User/mcp.json"
    );
    assert_eq!(shown(client("opencode")), ".config/opencode/opencode.json");
    std::fs::create_dir_all(home.path().join(".config/opencode")).unwrap();
    std::fs::write(home.path().join(".config/opencode/opencode.jsonc"), "{}").unwrap();
    assert_eq!(shown(client("opencode")), ".config/opencode/opencode.jsonc");
    assert_eq!(client("zed").path(&|_| None), None);
    assert_eq!(client("zed").path(&|_| Some("not/absolute".into())), None);
    // A variable wins over a file that is there.
    std::fs::create_dir_all(home.path().join(".codex")).unwrap();
    std::fs::write(home.path().join(".codex/config.toml"), "").unwrap();
    assert_eq!(shown(client("codex")), ".codex/config.toml");
    let elsewhere = |name: &str| match name {
        "CODEX_HOME" => Some("/c".to_owned()),
        "XDG_CONFIG_HOME" => Some("/x".to_owned()),
        _ => own(name),
    };
    assert_eq!(
        client("codex").path(&elsewhere).unwrap(),
        Path::new("/c/config.toml")
    );
    assert_eq!(
        client("goose").path(&elsewhere).unwrap(),
        Path::new("/x/goose/config.yaml")
    );
}
