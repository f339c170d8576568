//! Which files there may be, and where in them the servers are.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::members;

type Own<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A file in which another program keeps its servers.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    /// Where the table of servers may be: names of members, one within the other.
    keys: &'static [&'static [&'static str]],
    /// Whether `$NAME` is a variable there.
    pub has_bare_variables: bool,
    /// Whether `url` is an address of the older transport there.
    pub url_is_sse: bool,
}

const USUAL: &[&[&str]] = &[&["mcpServers"]];
const ANY: &[&[&str]] = &[
    &["mcpServers"],
    &["servers"],
    &["mcp_servers"],
    &["mcp", "servers"],
];

impl Source {
    /// The tables of servers in what the file says.
    pub fn tables<'a>(&self, file: &'a Value, own: Own<'_>) -> Vec<&'a Map<String, Value>> {
        let within = |keys: &&[&str]| keys.iter().try_fold(file, |at, key| at.get(key));
        let mut tables: Vec<_> = self
            .keys
            .iter()
            .filter_map(within)
            .filter_map(members)
            .collect();
        // Claude Code keeps those of a folder beside those of all folders.
        let here = own("PWD").and_then(|here| file.get("projects")?.get(here));
        tables.extend(here.and_then(|it| it.get("mcpServers")).and_then(members));
        tables
    }
}

/// Whose files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// Those that mcp-server-code-execution-mode reads.
    Bridge,
    All,
}

/// Where mcp-server-code-execution-mode keeps what it has, if somebody has said where.
pub fn bridge_folder(own: Own<'_>) -> Option<PathBuf> {
    named("MCP_BRIDGE_STATE_DIR", own)
}

/// The path that a variable names, if it is absolute. What is below the folder that we were started in is not known to be its owner's.
fn named(variable: &str, own: Own<'_>) -> Option<PathBuf> {
    let text = own(variable)?;
    let path = match text.strip_prefix("~/").zip(own("HOME")) {
        Some((rest, home)) => PathBuf::from(home).join(rest),
        None => PathBuf::from(text),
    };
    path.is_absolute().then_some(path)
}

/// All files that may be there, the most certain first.
pub fn sources(places: Places, own: Own<'_>) -> Vec<Source> {
    let mut all = Vec::new();
    let mut add = |path: Option<PathBuf>, keys| {
        let source = path.filter(|path| path.is_absolute()).map(|path| Source {
            has_bare_variables: path.ends_with(".gemini/settings.json"),
            url_is_sse: path.ends_with(".gemini/settings.json"),
            path,
            keys,
        });
        all.extend(source);
    };
    let named = |variable: &str| named(variable, own);
    let home = named("HOME");
    let at_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let config = named("XDG_CONFIG_HOME").or_else(|| at_home(".config"));
    let in_config = |path: &str| config.as_ref().map(|config| config.join(path));
    let in_library = |path: &str| at_home("Library/Application Support").map(|it| it.join(path));

    add(named("MCP_SERVERS_CONFIG"), ANY);
    let mut own_files: Vec<PathBuf> = bridge_folder(own)
        .or_else(|| at_home("MCPs"))
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect();
    own_files.sort();
    own_files.into_iter().for_each(|path| add(Some(path), ANY));
    if places == Places::Bridge {
        return all;
    }
    add(at_home(".claude.json"), USUAL);
    add(Some("/etc/claude-code/managed-mcp.json".into()), USUAL);
    let desktop = "Claude/claude_desktop_config.json";
    add(in_config(desktop), USUAL);
    add(in_library(desktop), USUAL);
    add(at_home(".cursor/mcp.json"), USUAL);
    for flavour in ["Code", "Code - Insiders"] {
        let user = |path: &str| format!("{flavour}/User/{path}");
        let servers = user("mcp.json");
        add(in_config(&servers), &[&["servers"]]);
        add(in_library(&servers), &[&["servers"]]);
        let cline = user("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json");
        add(in_config(&cline), USUAL);
        add(in_library(&cline), USUAL);
    }
    add(at_home(".copilot/mcp-config.json"), ANY);
    add(at_home(".codeium/windsurf/mcp_config.json"), USUAL);
    add(at_home(".codeium/windsurf-next/mcp_config.json"), USUAL);
    let cline = named("CLINE_MCP_SETTINGS_PATH");
    let cline = cline.or_else(|| at_home(".cline/data/settings/cline_mcp_settings.json"));
    add(cline, USUAL);
    add(in_config("zed/settings.json"), &[&["context_servers"]]);
    let codex = named("CODEX_HOME").or_else(|| at_home(".codex"));
    add(codex.map(|it| it.join("config.toml")), &[&["mcp_servers"]]);
    add(at_home(".gemini/settings.json"), USUAL);
    add(in_config("goose/config.yaml"), &[&["extensions"]]);
    for path in [
        named("OPENCODE_CONFIG"),
        in_config("opencode/opencode.json"),
        in_config("opencode/opencode.jsonc"),
    ] {
        add(path, &[&["mcp", "servers"], &["mcp"]]);
    }
    all
}
