//! The clients: where each keeps its servers, under which key, and what an entry looks like. `docs/clients.md` has the same for people.

/// One MCP client. In a template, words in braces stand for what differs: see `Reach::value`.
pub struct Client {
    /// What it is called at the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// Where its file may be, the usual place first. The end of its name says how it is written.
    pub files: &'static [&'static str],
    /// The table of servers in the file.
    pub key: &'static str,
    /// An entry for a server that the client starts.
    pub program: &'static str,
    /// An entry for a server at an address; none if the file cannot have one.
    pub address: Option<&'static str>,
    /// What makes the client read its file again.
    pub restart: &'static str,
}

const PROGRAM: &str = r#"{"command": "{command}", "args": "{args}"}"#;
const TYPED_PROGRAM: &str = r#"{"type": "stdio", "command": "{command}", "args": "{args}"}"#;
const ADDRESS: &str = r#"{"url": "{url}", "headers": {"Authorization": "{bearer}"}}"#;
const TYPED_ADDRESS: &str =
    r#"{"type": "http", "url": "{url}", "headers": {"Authorization": "{bearer}"}}"#;

pub const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        title: "Claude Code",
        files: &["$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"],
        key: "mcpServers",
        program: TYPED_PROGRAM,
        address: Some(TYPED_ADDRESS),
        restart: "Start a new `claude`; `claude mcp list` shows whether it connects.",
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        files: &["$CONFIG/Claude/claude_desktop_config.json"],
        key: "mcpServers",
        program: PROGRAM,
        address: None,
        restart: "Quit Claude Desktop, not only its window, and open it again.",
    },
    Client {
        name: "cursor",
        title: "Cursor",
        files: &["~/.cursor/mcp.json"],
        key: "mcpServers",
        program: PROGRAM,
        address: Some(ADDRESS),
        restart: "Restart Cursor, or switch hotcell on in its settings under MCP.",
    },
    Client {
        name: "vscode",
        title: "VS Code",
        files: &[
            "$CONFIG/Code/User/mcp.json",
            "$CONFIG/Code - Insiders/User/mcp.json",
        ],
        key: "servers",
        program: TYPED_PROGRAM,
        address: Some(TYPED_ADDRESS),
        restart: "Run `MCP: List Servers` in VS Code and start hotcell there.",
    },
    Client {
        name: "codex",
        title: "Codex",
        files: &["$CODEX_HOME/config.toml", "~/.codex/config.toml"],
        key: "mcp_servers",
        program: PROGRAM,
        address: Some(r#"{"url": "{url}", "http_headers": {"Authorization": "{bearer}"}}"#),
        restart: "Start a new `codex`; `codex mcp list` shows it.",
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        files: &["~/.gemini/settings.json"],
        key: "mcpServers",
        program: PROGRAM,
        address: Some(r#"{"httpUrl": "{url}", "headers": {"Authorization": "{bearer}"}}"#),
        restart: "Start a new `gemini`, in a folder that it trusts.",
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        files: &[
            "~/.codeium/windsurf/mcp_config.json",
            "~/.codeium/windsurf-next/mcp_config.json",
        ],
        key: "mcpServers",
        program: PROGRAM,
        address: Some(r#"{"serverUrl": "{url}", "headers": {"Authorization": "{bearer}"}}"#),
        restart: "Restart Windsurf, or refresh its list of MCP servers.",
    },
    Client {
        name: "cline",
        title: "Cline",
        files: &[
            "$CLINE_MCP_SETTINGS_PATH",
            "~/.cline/data/settings/cline_mcp_settings.json",
            "$CONFIG/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ],
        key: "mcpServers",
        program: PROGRAM,
        address: Some(
            r#"{"type": "streamableHttp", "url": "{url}", "headers": {"Authorization": "{bearer}"}}"#,
        ),
        restart: "Restart Cline if its list of MCP servers does not show hotcell.",
    },
    Client {
        name: "zed",
        title: "Zed",
        files: &["$CONFIG/zed/settings.json"],
        key: "context_servers",
        program: PROGRAM,
        address: Some(ADDRESS),
        restart: "Restart Zed if its agent settings do not show hotcell.",
    },
    Client {
        name: "opencode",
        title: "opencode",
        files: &[
            "$OPENCODE_CONFIG",
            "$CONFIG/opencode/opencode.json",
            "$CONFIG/opencode/opencode.jsonc",
        ],
        key: "mcp",
        program: r#"{"type": "local", "command": "{argv}", "enabled": true}"#,
        address: Some(
            r#"{"type": "remote", "url": "{url}", "headers": {"Authorization": "{bearer}"}, "enabled": true}"#,
        ),
        restart: "Start a new `opencode`; `opencode mcp list` shows whether it connects.",
    },
    Client {
        name: "goose",
        title: "Goose",
        files: &["$CONFIG/goose/config.yaml"],
        key: "extensions",
        program: r#"{"type": "stdio", "name": "hotcell", "enabled": true, "cmd": "{command}", "args": "{args}", "timeout": 300}"#,
        address: Some(
            r#"{"type": "streamable_http", "name": "hotcell", "enabled": true, "uri": "{url}", "headers": {"Authorization": "{bearer}"}, "timeout": 300}"#,
        ),
        restart: "Start a new session of Goose.",
    },
];
