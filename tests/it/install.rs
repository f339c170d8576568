//! `hotcell install` and `uninstall`: our entry gets into each client's file and out again, and nothing else of it changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Answer, Hotcell, PATH, Running, anyone, has};

/// Every client, its file below the home, and what is in it before.
const CLIENTS: [(&str, &str, &str); 11] = [
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    }\n  }\n}",
    ),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\r\n  \"globalShortcut\": \"\",\r\n  \"mcpServers\": { \"a\": { \"command\": \"a\" } }\r\n}\r\n",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "\u{feff}{\"mcpServers\":{\"a\":{\"url\":\"https://a.test//\"}}}\n",
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t// ours\n\t\"servers\": {\n\t\t\"a\": { \"type\": \"stdio\", \"command\": \"a\" }, // one\n\t},\n\t\"inputs\": [],\n}\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# my model\nmodel = \"x\"   # best\n\n[mcp_servers.a]\ncommand = 'a'\nargs = [\n  '[b]', # b\n]\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n  \"mcpServers\": {},\n  \"security\": {}\n}\n",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\n    \"mcpServers\": {\n        \"a\": {\n            \"serverUrl\": \"https://a.test\"\n        }\n    }\n}\n",
    ),
    (
        "cline",
        ".cline/data/settings/cline_mcp_settings.json",
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\", \"timeout\": 60 }\n  }\n}\n",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\n    /* a */ \"a\": { \"command\": \"a\" }\n    // no more\n  }\n}\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{ \"mcp\": { \"a\": { \"type\": \"local\", \"command\": [\"a\"] } } }",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_MODEL: x # best\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n\n# the end\nGOOSE_PROVIDER: y\n",
    ),
];

fn call(hotcell: &Hotcell, words: &[&str]) -> Answer {
    Running::start(hotcell.command().args(words)).finish()
}

fn done(hotcell: &Hotcell, words: &[&str]) -> String {
    let answer = call(hotcell, words);
    assert_eq!(answer.code, Some(0), "{words:?}: {}", answer.err());
    assert_eq!(answer.err(), "", "{words:?}");
    answer.out()
}

/// A client's file as JSON, read by somebody else's parser.
fn read(path: &std::path::Path) -> Value {
    let name = path.display().to_string();
    let script = match name.rsplit('.').next() {
        Some("toml") => {
            "import tomllib, json, sys; print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))))"
        }
        Some("yaml") => "require 'yaml'; require 'json'; puts YAML.load_file(ARGV[0]).to_json",
        // What node takes for a JavaScript value: comments and commas may be there.
        _ => {
            "const text = require('fs').readFileSync(process.argv[1], 'utf8').replace(/^\\uFEFF/, ''); console.log(JSON.stringify(eval('(' + text + ')')))"
        }
    };
    let (program, flag) = match name.rsplit('.').next() {
        Some("toml") => ("python3", "-c"),
        Some("yaml") => ("ruby", "-e"),
        _ => ("node", "-e"),
    };
    let output = Command::new(program)
        .env("PATH", PATH)
        .args([flag, script, &name])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn each_client_gets_an_entry_that_starts_us_and_loses_it_again() {
    let Some(hotcell) = anyone() else { return };
    if !["node", "python3", "ruby"].into_iter().all(has) {
        return;
    }
    let binary = hotcell.binary().display().to_string();
    for (client, file, before) in CLIENTS {
        let path = hotcell.write(&format!("home/{file}"), before);
        let shown = done(&hotcell, &["install", client, "--dry-run"]);
        assert!(shown.contains("\n+ ") && shown.contains(&binary), "{shown}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}");

        let said = done(&hotcell, &["install", client]);
        let copy = format!("{}.before-hotcell", path.display());
        assert!(said.contains(&copy), "{said}");
        assert!(said.lines().count() == 3, "{said}");
        assert_eq!(fs::read_to_string(&copy).unwrap(), before, "{client}");
        let read = read(&path);
        let table = ["mcpServers", "servers", "context_servers", "mcp_servers"]
            .into_iter()
            .chain(["mcp", "extensions"])
            .find_map(|key| read.get(key))
            .unwrap();
        let entry = &table["hotcell"];
        let command = match client {
            "opencode" => entry["command"].clone(),
            "goose" => json!([entry["cmd"], entry["args"][0]]),
            _ => json!([entry["command"], entry["args"][0]]),
        };
        assert_eq!(command, json!([binary, "serve"]), "{client}: {entry}");
        // Not a letter of what was there is gone.
        let now = fs::read_to_string(&path).unwrap();
        let mut letters = now.chars();
        assert!(
            before.chars().all(|it| letters.any(|other| other == it)),
            "{now}"
        );
        assert!(done(&hotcell, &["install", client]).contains("has hotcell already"));

        done(&hotcell, &["uninstall", client]);
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}");
        assert!(done(&hotcell, &["uninstall", client]).contains("has no hotcell"));
    }
}

#[test]
fn a_table_that_was_made_for_us_goes_with_us() {
    let Some(hotcell) = anyone() else { return };
    for (client, before) in [
        ("gemini", "{\n  // mine\n  \"security\": {}\n}\n"),
        ("opencode", "{\"theme\": \"x\"}"),
        ("cursor", "\n"),
        ("codex", "# mine\nmodel = \"x\"  # best\n"),
        ("goose", "GOOSE_MODEL: x # best\n"),
    ] {
        let (_, file, _) = CLIENTS.iter().find(|it| it.0 == client).unwrap();
        let path = hotcell.write(&format!("home/{file}"), before);
        for words in [&[][..], &["--http"], &["--as", "code-runner"]] {
            done(&hotcell, &[&["install", client], words].concat());
        }
        done(&hotcell, &["uninstall", client]);
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}");
    }
    // What somebody else wrote meanwhile stays, and so does the table.
    let (_, file, _) = CLIENTS.iter().find(|it| it.0 == "gemini").unwrap();
    let path = hotcell.place(format!("home/{file}"));
    done(&hotcell, &["install", "gemini"]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"security\": {}", "\"security\": 1")).unwrap();
    done(&hotcell, &["uninstall", "gemini"]);
    let left = fs::read_to_string(&path).unwrap();
    assert_eq!(
        read(&path),
        json!({ "security": 1, "mcpServers": {} }),
        "{left}"
    );
    assert!(left.contains("// mine"), "{left}");
}

#[test]
fn a_client_without_a_file_gets_one_of_its_own() {
    let Some(hotcell) = anyone() else { return };
    for (client, file, _) in CLIENTS {
        done(&hotcell, &["install", client, "--as", "code-runner"]);
        let path = hotcell.place(format!("home/{file}"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("code-runner") && text.ends_with('\n'),
            "{text}"
        );
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{client}");
    }
    // What an entry says can be started and is an MCP server.
    let text = fs::read_to_string(hotcell.place("home/.cursor/mcp.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let entry = &file["mcpServers"]["hotcell"];
    let words = entry["args"].as_array().unwrap();
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command.args(words.iter().filter_map(Value::as_str));
    hotcell.dress(&mut command);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let answer =
        Running::start(command.stdin(Stdio::piped())).finish_with(format!("{hello}\n").as_bytes());
    let server = &answer.json()["result"]["serverInfo"]["name"];
    assert_eq!(server, "Code Runner", "{}", answer.out());
}

#[test]
fn over_http_the_entry_has_the_token_and_nobody_else_can_read_it() {
    let Some(hotcell) = anyone() else { return };
    let token = hotcell.place("home/.local/state/hotcell/token");
    for (client, file, before) in CLIENTS {
        let path = hotcell.write(&format!("home/{file}"), before);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let answer = call(&hotcell, &["install", client, "--http", "--dry-run"]);
        if client == "claude-desktop" {
            assert_eq!(answer.code, Some(2), "{}", answer.out());
            assert!(answer.err().contains("Leave `--http` out"));
            continue;
        }
        assert!(answer.out().contains("Bearer …"), "{}", answer.out());
        if client == CLIENTS[0].0 {
            assert!(!token.exists(), "a dry run makes nothing");
        }
        let said = done(&hotcell, &["install", client, "--http"]);
        assert!(said.contains("`hotcell serve --http 127.0.0.1:3917`"));
        let secret = fs::read_to_string(&token).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("Bearer {}", secret.trim())));
        assert!(text.contains("http://127.0.0.1:3917/mcp"), "{text}");
        assert!(!said.contains(secret.trim()), "{said}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{client}");
        // And back to a program: nothing of the address stays.
        done(&hotcell, &["install", client]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("3917") && !text.contains(secret.trim()),
            "{text}"
        );
        done(&hotcell, &["uninstall", client]);
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}");
    }
    // Written as `serve` takes it.
    for address in ["4000", "127.0.0.1:4000", "localhost:4000"] {
        let flag = format!("--http={address}");
        let other = done(&hotcell, &["install", "zed", &flag, "--dry-run"]);
        assert!(other.contains("http://127.0.0.1:4000/mcp"), "{other}");
    }
}

#[test]
fn a_link_stays_a_link_and_every_older_file_is_kept() {
    let Some(hotcell) = anyone() else { return };
    let real = hotcell.write("dotfiles/cursor.json", "{}\n");
    hotcell.make_folder("home/.cursor");
    let link = hotcell.place("home/.cursor/mcp.json");
    symlink(&real, &link).unwrap();
    done(&hotcell, &["install", "cursor"]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let first = fs::read_to_string(&real).unwrap();
    assert!(first.contains("hotcell"), "{first}");
    let place = |name: &str| hotcell.place("dotfiles").join(name);
    let copy = |name: &str| fs::read_to_string(place(name)).unwrap();
    assert_eq!(copy("cursor.json.before-hotcell"), "{}\n");
    // Another copy is never written over.
    let several = ["--as", "code-runner", "--as", "code-runner-mcp"];
    done(&hotcell, &[&["install", "cursor"], &several[..]].concat());
    let entry: Value = serde_json::from_str(&fs::read_to_string(&real).unwrap()).unwrap();
    let words = &entry["mcpServers"]["hotcell"]["args"];
    assert_eq!(*words, json!([&["serve"], &several[..]].concat()));
    assert_eq!(copy("cursor.json.before-hotcell"), "{}\n");
    assert_eq!(copy("cursor.json.before-hotcell.2"), first);
    // Nothing else is left there.
    assert_eq!(fs::read_dir(place("")).unwrap().count(), 3);
}

#[test]
fn a_file_that_is_odd_is_refused_and_stays_as_it_is() {
    let Some(hotcell) = anyone() else { return };
    let path = hotcell.place("home/.cursor/mcp.json");
    let texts: [&[u8]; 5] = [
        b"no JSON",
        b"{\"mcpServers\": [1]}",
        b"{\"mcpServers\": {}, \"mcpServers\": {}}",
        b"{\"a\": \"\xff\"}",
        b"{\"mcpServers\": {\"hotcell\": 1}}",
    ];
    for text in texts {
        hotcell.write("home/.cursor/mcp.json", text);
        let answer = call(&hotcell, &["install", "cursor"]);
        assert_eq!(answer.code, Some(2), "{}", answer.out());
        // It says what to write by hand.
        let err = answer.err();
        assert!(
            err.contains("mcp.json") && err.contains("\"serve\""),
            "{err}"
        );
        assert_eq!(fs::read(&path).unwrap(), text);
    }
    // Empty is fine.
    hotcell.write("home/.cursor/mcp.json", "\n");
    done(&hotcell, &["install", "cursor"]);

    let refused = |why: &str| {
        let answer = call(&hotcell, &["install", "cursor"]);
        assert_eq!(answer.code, Some(2), "{why}: {}", answer.out());
        assert!(answer.err().contains(why), "{}", answer.err());
    };
    hotcell.write("home/.cursor/mcp.json", "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    refused("may not be written to");
    assert_eq!(fs::read(&path).unwrap(), b"{}");
    fs::remove_file(&path).unwrap();
    symlink(hotcell.place("nowhere"), &path).unwrap();
    refused("is a link to nothing");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused("is no regular file");
    fs::remove_dir(&path).unwrap();
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    refused("is no regular file");
    let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "the pipe, and the copy of the empty file");
    let answer = call(&hotcell, &["install", "emacs"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err().contains("claude-code"), "{}", answer.err());
}

#[test]
fn the_page_for_people_names_each_client_with_its_file_and_key() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/clients.md");
    let page = fs::read_to_string(page).unwrap();
    for (client, file, _) in CLIENTS {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{client}` ")));
        let row = row.unwrap_or_else(|| panic!("no row of `{client}`"));
        let file = file.rsplit('/').next().unwrap();
        assert!(row.contains(file), "{row}");
    }
}
