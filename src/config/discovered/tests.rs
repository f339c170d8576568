use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::config::Transport;
use crate::secret::Hidden;

/// What is found in a home with these files, as `name how`.
fn discover(files: &[(&str, &str)], more: &[(&str, &str)]) -> (Vec<String>, Discovered) {
    let home = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut variables: BTreeMap<&str, String> = BTreeMap::new();
    variables.insert("HOME", home.path().display().to_string());
    variables.insert("PATH", "/bin".to_owned());
    for (name, value) in more {
        let value = value.replace("HOME", &home.path().display().to_string());
        variables.insert(name, value);
    }
    let own = |name: &str| variables.get(name).cloned();
    let looking = Looking {
        own: &own,
        program: Path::new("/bin/sh").canonicalize().ok(),
        with_ourselves: false,
    };
    let found = looking.discover(Places::All, &[]);
    let shown = found
        .servers
        .iter()
        .map(|(name, server)| match &server.reach {
            Reach::Program(program) => {
                let folder = program
                    .folder
                    .iter()
                    .map(|it| format!(" in {}", it.display()));
                let usual = ["HOME", "PATH"];
                let env = program
                    .env
                    .iter()
                    .filter(|it| !usual.contains(&it.0.as_str()));
                let env = env.map(|(name, value)| format!(" {name}={}", value.reveal()));
                let more: String = folder.chain(env).collect();
                format!("{name}: {}{more}", program.command.join(" "))
            }
            Reach::Remote(remote) => {
                let headers = remote.headers.iter();
                let headers = headers.map(|(name, value)| format!(" {name}={}", value.reveal()));
                let kind = match remote.transport {
                    None => "",
                    Some(Transport::Http) => " http",
                    Some(Transport::Sse) => " sse",
                };
                format!(
                    "{name}: {}{kind}{}",
                    remote.url,
                    headers.collect::<String>()
                )
            }
            Reach::Mistake(why) => {
                let why = why.rsplit("`: ").next().unwrap_or_default();
                format!("{name}: mistake: {why}")
            }
        });
    (shown.collect(), found)
}

#[test]
fn the_files_of_every_client_are_read_as_it_writes_them() {
    let files = [
        (
            "MCPs/b.json",
            r#"{"mcpServers": {"own": {"command": "own", "cwd": "~/x", "description": "mine"}}}"#,
        ),
        ("MCPs/a.txt", "nonsense"),
        (
            ".claude.json",
            r#"{"mcpServers": {"cc": {"type": "http", "url": "https://cc.test/${PART:-mcp}", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}}},
            "projects": {"/here": {"mcpServers": {"local": {"command": "local"}}}, "/there": {"mcpServers": {"no": {"command": "no"}}}}}"#,
        ),
        (
            ".config/Claude/claude_desktop_config.json",
            r#"{"mcpServers": {"desktop": {"command": "npx", "args": ["-y", "d"], "env": {"A": "1", "B": 2}}}}"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"cursor": {"command": "c", "env": {"T": "${env:MY_TOKEN}"}}}}"#,
        ),
        (
            ".config/Code/User/mcp.json",
            "{ // servers\n \"servers\": {\"code\": {\"type\": \"sse\", \"url\": \"https://code.test/sse\",}, \"asks\": {\"command\": \"x\", \"args\": [\"${input:key}\"]}}, \"inputs\": [] }",
        ),
        (
            ".codeium/windsurf/mcp_config.json",
            r#"{"mcpServers": {"surf": {"serverUrl": "https://surf.test/"}, "off": {"command": "x", "disabled": true}}}"#,
        ),
        (
            ".cline/data/settings/cline_mcp_settings.json",
            r#"{"mcpServers": {"cline": {"type": "streamableHttp", "url": "https://cline.test/"}}}"#,
        ),
        (
            ".config/zed/settings.json",
            r#"{"theme": "x", /* old */ "context_servers": {"zed": {"source": "custom", "command": {"path": "z", "args": ["1"], "env": {"Z": "z"}}}, "zoff": {"command": "x", "enabled": false}}}"#,
        ),
        (
            ".codex/config.toml",
            "model = 'x'\n[mcp_servers.codex]\ncommand = 'cx'\nargs = ['a']\nenv_vars = ['MY_TOKEN']\n[mcp_servers.codexr]\nurl = 'https://codex.test/'\nbearer_token_env_var = 'MY_TOKEN'\nenv_http_headers = { 'X-Other' = 'MY_TOKEN' }\n",
        ),
        (
            ".gemini/settings.json",
            r#"{"mcpServers": {"gs": {"url": "https://gs.test/sse"}, "gh": {"httpUrl": "https://gh.test/mcp"}, "gv": {"command": "g", "args": ["$MY_TOKEN"]}}}"#,
        ),
        (
            ".config/goose/config.yaml",
            "# of Goose\nGOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  fetch:\n    name: Fetch\n    enabled: true\n    type: stdio\n    cmd: uvx\n    args:\n      - 'mcp-server-fetch'\n      - --fast\n    envs: {LEVEL: \"2\"}\n    env_keys: [MY_TOKEN]\n    timeout: 300\n  away:\n    enabled: true\n    type: streamable_http\n    uri: https://away.test/mcp\n    headers: {}\n  asleep: {enabled: false, type: stdio, cmd: x}\n",
        ),
        (
            ".config/opencode/opencode.jsonc",
            r#"{"mcp": {"oc": {"type": "local", "command": ["o", "1"], "environment": {"K": "{env:MY_TOKEN}"}}, "or": {"type": "remote", "url": "https://or.test/", "enabled": true}}}"#,
        ),
    ];
    let more = [("MY_TOKEN", "tok-12345678"), ("PWD", "/here")];
    let (found, all) = discover(&files, &more);
    let home = match &all.servers[0].1.reach {
        Reach::Program(program) => program.folder.clone().unwrap().display().to_string(),
        other => panic!("{other:?}"),
    };
    let expected = [
        &format!("own: own in {home}"),
        "cc: https://cc.test/mcp http authorization=Bearer tok-12345678",
        "local: local",
        "desktop: npx -y d A=1 B=2",
        "cursor: c T=tok-12345678",
        "asks: mistake: `${input:key}` is known only to the program whose file this is",
        "code: https://code.test/sse sse",
        "surf: https://surf.test/",
        "cline: https://cline.test/ http",
        "zed: z 1 Z=z",
        "codex: cx a MY_TOKEN=tok-12345678",
        "codexr: https://codex.test/ x-other=tok-12345678 authorization=Bearer tok-12345678",
        "gh: https://gh.test/mcp",
        "gs: https://gs.test/sse sse",
        "gv: g tok-12345678",
        "fetch: uvx mcp-server-fetch --fast LEVEL=2 MY_TOKEN=tok-12345678",
        "away: https://away.test/mcp http",
        "oc: o 1 K=tok-12345678",
        "or: https://or.test/",
    ];
    let mut sorted: Vec<&str> = found.iter().map(String::as_str).collect();
    let mut expected: Vec<&str> = expected.to_vec();
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(all.servers[0].1.description.as_deref(), Some("mine"));
    assert!(all.complaints.is_empty(), "{:?}", all.complaints);
    // Whatever came out of a variable with such a name must not come back.
    for (name, server) in &all.servers {
        let shown = found.iter().find(|it| it.starts_with(&format!("{name}:")));
        if shown.is_some_and(|it| it.contains("tok-12345678")) {
            let secrets: Vec<&str> = server.secrets.iter().map(Hidden::reveal).collect();
            assert!(secrets.contains(&"tok-12345678"), "{name}: {secrets:?}");
        }
    }
}

#[test]
fn our_own_entry_is_left_out_the_same_one_is_there_once_and_a_broken_file_is_told() {
    let files = [
        (
            "MCPs/a.json",
            r#"{"mcpServers": {"x": {"command": "one"}, "hotcell": {"command": "anything"}, "me": {"command": "/opt/bin/hotcell"}, "old": {"command": "uvx", "args": ["--from", "git+x/mcp-server-code-execution-mode"]}, "shell": {"command": "sh"}}}"#,
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"x": {"command": "one"}, "y": {"command": "one"}}}"#,
        ),
        (
            ".claude.json",
            r#"{"mcpServers": {"x": {"command": "two"}, "odd": 5}}"#,
        ),
        (".gemini/settings.json", "{ nonsense"),
        (".codex/config.toml", "[["),
        (
            ".config/goose/config.yaml",
            "extensions: &a [*a, *a]\n  : {",
        ),
    ];
    let (found, all) = discover(&files, &[]);
    let expected = ["x: one", "odd: mistake: it is no object", "x_2: two"];
    let mut sorted: Vec<&str> = found.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(all.complaints.len(), 3, "{:?}", all.complaints);

    let named = [(
        "elsewhere/s.json",
        r#"{"servers": {"s": {"command": "s"}}}"#,
    )];
    let (found, _) = discover(&named, &[("MCP_SERVERS_CONFIG", "HOME/elsewhere/s.json")]);
    assert_eq!(found, ["s: s"]);
    let moved = [
        (
            "elsewhere/s.json",
            r#"{"mcpServers": {"s": {"command": "s"}}, "description": "all of them"}"#,
        ),
        ("MCPs/a.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#),
    ];
    for (folder, expected) in [
        ("HOME/elsewhere", "s: s"),
        ("~/elsewhere", "s: s"),
        ("elsewhere", "a: a"),
        ("", "a: a"),
    ] {
        let (found, all) = discover(&moved, &[("MCP_BRIDGE_STATE_DIR", folder)]);
        assert_eq!(found, [expected], "{folder}");
        let described = all.servers[0].1.description.as_deref();
        assert_eq!(described.is_some(), expected == "s: s");
    }
}
