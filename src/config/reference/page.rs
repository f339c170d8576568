//! The table for people: `docs/config.md`, and the file to begin with.

use std::fmt::Write as _;

use super::schema::as_json;
use super::{GROUPS, SETTINGS, Setting, VARIABLES};

const BEGIN: &str = "# Configuration

`config.toml` is in `~/.config/hotcell` (`$XDG_CONFIG_HOME/hotcell`). It holds for every run, at the command line and over MCP. Without the file the defaults hold.

| command | what it does |
|---|---|
| `hotcell config` | prints every setting, its value and where that comes from (`--json`) |
| `hotcell config edit` | opens the file in `$VISUAL` or `$EDITOR`, and checks it afterwards; a new one begins with all settings as comments |
| `hotcell config check` | says what is wrong with it, with line and key; exit status 2 if something is |
| `hotcell config schema` | prints a JSON Schema of it, for editors |

A flag comes before a variable, a variable before the file, and the file before the default, unless a row says otherwise.

This page is what `hotcell help config` prints.
";

/// `docs/config.md`.
pub fn page() -> String {
    let mut page = BEGIN.to_owned();
    for group in GROUPS {
        let title = match group.table {
            "" => "Keys without a table".to_owned(),
            table => format!("`{}`", header(table)),
        };
        let more = group
            .topic
            .map(|it| format!(" `hotcell help {it}` has more."));
        let says = group.says;
        let more = more.unwrap_or_default();
        let _ = write!(page, "\n## {title}\n\n{says}{more}\n\n");
        page += "| key | takes | default | what it decides |\n|---|---|---|---|\n";
        for setting in of(group.table) {
            let default = match as_json(setting.default) {
                Some(_) => format!("`{}`", setting.default),
                None => setting.default.to_owned(),
            };
            let (name, takes, says) = (setting.name(), setting.kind.words(), setting.says);
            let variables = variables(setting);
            let _ = writeln!(
                page,
                "| `{name}` | {takes} | {default} | {says}{variables} |"
            );
        }
    }
    page += "\n## Other variables\n\n| variable | what it does |\n|---|---|\n";
    for (name, says) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {says} |");
    }
    page += "\n## An example\n\n```toml\n";
    page += &example();
    page + "```\n"
}

fn variables(setting: &Setting) -> String {
    let listed = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
        names.join(", ")
    };
    let mut text = String::new();
    if !setting.over.is_empty() {
        let _ = write!(text, "; {} comes before it", listed(setting.over));
    }
    if !setting.under.is_empty() {
        let _ = write!(text, "; without both, {}", listed(setting.under));
    }
    text
}

/// A file with every setting as a comment.
pub fn template() -> String {
    let mut text = "# What hotcell does on this machine. `hotcell help config` describes it, `hotcell config check` checks it.\n".to_owned();
    for group in GROUPS {
        let _ = write!(text, "\n# {}\n", group.says);
        if !group.table.is_empty() {
            let _ = writeln!(text, "#{}", header(group.table).replace("NAME", "name"));
        }
        for setting in of(group.table) {
            let value = match as_json(setting.default) {
                Some(_) => setting.default,
                None => setting.example,
            };
            let _ = writeln!(text, "#{} = {value}  # {}", setting.name(), setting.says);
        }
    }
    text
}

/// A file that says something about nearly everything.
fn example() -> String {
    let mut text = String::new();
    for group in GROUPS {
        // One server is enough, and it cannot have a command and an address.
        let shown = |it: &&Setting| match group.table {
            "servers.NAME" => matches!(it.name(), "command" | "args" | "pass" | "allow"),
            "secret[]" => it.name() != "file",
            "servers" => false,
            _ => true,
        };
        let mut settings = of(group.table).filter(shown).peekable();
        if settings.peek().is_none() {
            continue;
        }
        if !group.table.is_empty() {
            let table = header(group.table).replace("NAME", "github");
            let _ = writeln!(text, "\n{table}");
        }
        for setting in settings {
            let _ = writeln!(text, "{} = {}", setting.name(), setting.example);
        }
    }
    text
}

fn of(table: &str) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(move |it| it.table() == table)
}

/// A table as the file names it.
fn header(table: &str) -> String {
    match table.strip_suffix("[]") {
        Some(list) => format!("[[{list}]]"),
        None => format!("[{table}]"),
    }
}
