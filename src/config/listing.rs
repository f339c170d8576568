//! Every setting with its value and where that comes from, for people.
//!
//! SECURITY: what may be a secret is not among the values: variables and headers of servers, and passwords in addresses.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::FILE;
use super::reference::{Kind, SETTINGS, Setting, VARIABLES, find};

/// One setting as it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Settled {
    pub key: String,
    /// In TOML, or in words if it is a default that is not fixed.
    pub value: String,
    pub origin: Origin,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The line of the file.
    File(usize),
    Environment(&'static str),
}

/// All settings, in the order of the reference; and then those of mounts, secrets and servers as the file has them.
pub fn listing(folder: Option<&Path>) -> Vec<Settled> {
    let text = folder.and_then(|folder| fs::read_to_string(folder.join(FILE)).ok());
    let text = text.unwrap_or_default();
    let written = leaves(&text);
    let is_plain = |it: &&Setting| !it.key.contains("[]") && !it.key.contains("NAME");
    let mut all: Vec<Settled> = SETTINGS
        .iter()
        .filter(is_plain)
        .map(|setting| settle(setting, &written))
        .collect();
    for (key, value, line) in written {
        if !all.iter().any(|it| it.key == key) {
            let origin = Origin::File(line);
            let value = hide(&key, &value);
            all.push(Settled { key, value, origin });
        }
    }
    for &(name, _) in VARIABLES {
        if let Some(value) = variable(name) {
            let value = hide(name, &quoted(&value));
            let origin = Origin::Environment(name);
            let key = name.to_owned();
            all.push(Settled { key, value, origin });
        }
    }
    all
}

fn settle(setting: &'static Setting, written: &[(String, String, usize)]) -> Settled {
    let of = |names: &'static [&'static str]| {
        let mut set = names
            .iter()
            .filter_map(|name| Some((*name, variable(name)?)));
        set.find(|(_, value)| setting.kind != Kind::Bool || value != "0")
    };
    let file = || written.iter().find(|(key, ..)| key == setting.key);
    let (value, origin) = match (of(setting.over), file()) {
        (Some((name, _)), _) if setting.kind == Kind::Bool => {
            ("true".to_owned(), Origin::Environment(name))
        }
        (Some((name, value)), _) => (quoted(&value), Origin::Environment(name)),
        (None, Some((_, value, line))) => (value.clone(), Origin::File(*line)),
        (None, None) => match of(setting.under) {
            Some((name, value)) => (quoted(&value), Origin::Environment(name)),
            None => (setting.default.to_owned(), Origin::Default),
        },
    };
    Settled {
        key: setting.key.to_owned(),
        value: hide(setting.key, &value),
        origin,
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.trim().is_empty())
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A value as others may see it too.
fn hide(key: &str, value: &str) -> String {
    let is_of_server = key.starts_with("servers.");
    let is_hidden = |part: &str| part == "env" || part == "headers";
    if key == "HOTCELL_TOKEN" || (is_of_server && key.split('.').skip(2).any(is_hidden)) {
        return "\"…\"".to_owned();
    }
    let Some((scheme, rest)) = value.split_once("://") else {
        return value.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '"']).unwrap_or(rest.len()));
    let path = match path.split_once('?') {
        Some((path, query)) => format!("{path}?…{}", if query.ends_with('"') { "\"" } else { "" }),
        None => path.to_owned(),
    };
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}{path}"),
        None => format!("{scheme}://{authority}{path}"),
    }
}

/// What the file says, key by key: each with its value in one line, and the line where it stands.
fn leaves(text: &str) -> Vec<(String, String, usize)> {
    let mut all = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        collect(table.get_ref(), "", text, &mut all);
    }
    all.sort_by_key(|(.., line)| *line);
    all
}

fn collect(table: &DeTable<'_>, before: &str, text: &str, all: &mut Vec<(String, String, usize)>) {
    for (name, value) in table {
        let key = format!("{before}{}", name.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) if find(&key).is_none_or(|it| it.kind == Kind::Map) => {
                collect(inner, &format!("{key}."), text, all);
            }
            DeValue::Array(items) if items.iter().any(|it| it.get_ref().is_table()) => {
                for (index, item) in items.iter().enumerate() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        collect(inner, &format!("{key}[{index}]."), text, all);
                    }
                }
            }
            _ => {
                let written = text.get(value.span()).unwrap_or_default();
                let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
                let before = text.get(..name.span().start).unwrap_or_default();
                all.push((key, written, 1 + before.matches('\n').count()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (key, value, shown) in [
            (
                "packages.pypi",
                "\"https://me:pw@host/simple\"",
                "\"https://…@host/simple\"",
            ),
            (
                "packages.pypi",
                "\"https://host/simple\"",
                "\"https://host/simple\"",
            ),
            (
                "servers.a.url",
                "\"https://host/mcp?key=1\"",
                "\"https://host/mcp?…\"",
            ),
            ("servers.a.env.KEY", "\"secret\"", "\"…\""),
            ("servers.a.headers.X-Key", "\"secret\"", "\"…\""),
            ("HOTCELL_TOKEN", "\"secret\"", "\"…\""),
        ] {
            assert_eq!(hide(key, value), shown, "{key}");
        }
    }

    #[test]
    fn each_key_of_a_file_is_found_with_its_line() {
        let text = "auto_install = true\n[limits]\nmax = { memory = '8g',\n  cpus = 4 }\n[[mount]]\nhost = '/srv'\n\
            [servers.a]\nargs = [\n  'x',\n]\nenv = { A = 'b' }\n";
        let found = leaves(text);
        let found: Vec<(&str, &str, usize)> = found
            .iter()
            .map(|(a, b, c)| (a.as_str(), b.as_str(), *c))
            .collect();
        assert_eq!(
            found,
            [
                ("auto_install", "true", 1),
                ("limits.max.memory", "'8g'", 3),
                ("limits.max.cpus", "4", 4),
                ("mount[0].host", "'/srv'", 6),
                ("servers.a.args", "[ 'x', ]", 8),
                ("servers.a.env.A", "'b'", 11),
            ]
        );
    }
}
