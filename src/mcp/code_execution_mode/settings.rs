//! The variables of mcp-server-code-execution-mode, as settings of ours.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::config::container_user;
use crate::request::{IsolationChoice, parse_count, parse_cpus, parse_duration, parse_size};

/// What the server's owner has set.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub seconds: u64,
    pub most_seconds: u64,
    pub is_toon: bool,
    /// Limits of each run, as arguments of our own tool.
    pub limits: Map<String, Value>,
    /// What its owner should know.
    pub notes: Vec<String>,
}

/// The container engine that `MCP_BRIDGE_RUNTIME` names, by its name or its path.
pub fn container_engine(named: &str) -> Option<IsolationChoice> {
    match Path::new(named.trim()).file_name()?.to_str()? {
        "podman" => Some(IsolationChoice::Podman),
        "docker" => Some(IsolationChoice::Docker),
        _ => None,
    }
}

/// Variables that are read, here or where servers are looked for.
const KNOWN: [&str; 9] = [
    "MCP_BRIDGE_ALLOW_SELF_SERVER",
    "MCP_BRIDGE_CPUS",
    "MCP_BRIDGE_LOG_LEVEL",
    "MCP_BRIDGE_MAX_TIMEOUT",
    "MCP_BRIDGE_MEMORY",
    "MCP_BRIDGE_OUTPUT_MODE",
    "MCP_BRIDGE_PIDS",
    "MCP_BRIDGE_STATE_DIR",
    "MCP_BRIDGE_TIMEOUT",
];
/// Variables that only an engine needs.
const CONTAINERS: [&str; 4] = [
    "MCP_BRIDGE_CONTAINER_USER",
    "MCP_BRIDGE_IMAGE",
    "MCP_BRIDGE_RUNTIME",
    "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT",
];

impl Settings {
    /// Reads the variables; what cannot be read is as if it were not set, and is noted.
    pub fn read(variables: &BTreeMap<String, String>) -> Self {
        let variable = |name: &str| {
            let set = variables.get(name).cloned();
            set.filter(|value| !value.trim().is_empty())
        };
        let set = variables.keys().map(String::as_str);
        let set = set.filter(|name| name.starts_with("MCP_BRIDGE_") && variable(name).is_some());
        let engine = variable("MCP_BRIDGE_RUNTIME").and_then(|it| container_engine(&it));
        let note = |name: &str| match name {
            name if KNOWN.contains(&name) => None,
            name if CONTAINERS.contains(&name) && engine.is_some() => None,
            name if CONTAINERS.contains(&name) => Some(format!(
                "{name} has no effect: MCP_BRIDGE_RUNTIME names neither podman nor docker"
            )),
            name => Some(format!(
                "{} is not known and has no effect",
                name.escape_debug()
            )),
        };
        let mut notes: Vec<String> = set.filter_map(note).collect();
        let user = variable("MCP_BRIDGE_CONTAINER_USER");
        if user.is_some_and(|it| engine.is_some() && container_user(&it).is_none()) {
            notes.push("MCP_BRIDGE_CONTAINER_USER: two numbers were expected as in `1000:1000`, neither of them 0".to_owned());
        }
        for name in ["MCP_BRIDGE_STATE_DIR", "MCP_SERVERS_CONFIG"] {
            let path = variable(name);
            if path.is_some_and(|it| !it.starts_with('/') && !it.starts_with("~/")) {
                notes.push(format!("{name} has no effect: it is not an absolute path"));
            }
        }
        let mut seconds = |name: &str, usual: u64| {
            let Some(text) = variable(name) else {
                return usual;
            };
            match parse_duration(&text) {
                // Whole ones, and none is shorter than was asked for.
                Ok(time) if !time.is_zero() => time.as_secs() + u64::from(time.subsec_nanos() > 0),
                _ => {
                    notes.push(format!("{name}: `{}` is no time", text.escape_debug()));
                    usual
                }
            }
        };
        let most_seconds = seconds("MCP_BRIDGE_MAX_TIMEOUT", 120);
        let usual = seconds("MCP_BRIDGE_TIMEOUT", 30).min(most_seconds);
        let mut limits = Map::from_iter([
            ("memory".to_owned(), "512m".into()),
            ("processes".to_owned(), 128.into()),
        ]);
        let mut limit = |name: &str, ours: &str, is_good: &dyn Fn(&str) -> bool| {
            let Some(text) = variable(name) else { return };
            match is_good(text.trim()) {
                true => drop(limits.insert(ours.to_owned(), number(text.trim()))),
                false => notes.push(format!(
                    "{name}: `{}` is not understood",
                    text.escape_debug()
                )),
            }
        };
        limit("MCP_BRIDGE_MEMORY", "memory", &|it| parse_size(it).is_ok());
        limit("MCP_BRIDGE_PIDS", "processes", &|it| {
            parse_count(it).is_ok()
        });
        limit("MCP_BRIDGE_CPUS", "cpus", &|it| parse_cpus(it).is_ok());
        let mode = variable("MCP_BRIDGE_OUTPUT_MODE").map(|it| it.trim().to_lowercase());
        if !matches!(mode.as_deref(), None | Some("compact" | "toon")) {
            notes.push("MCP_BRIDGE_OUTPUT_MODE: `compact` or `toon` was expected".to_owned());
        }
        Self {
            seconds: usual,
            most_seconds,
            is_toon: mode.as_deref() == Some("toon"),
            limits,
            notes,
        }
    }
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Settings {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Settings::read(&pairs.iter().map(owned).collect())
    }

    #[test]
    fn times_have_units_and_what_is_not_understood_is_said() {
        assert_eq!((read(&[]).seconds, read(&[]).most_seconds), (30, 120));
        let settings = read(&[
            ("MCP_BRIDGE_TIMEOUT", "60s"),
            ("MCP_BRIDGE_MAX_TIMEOUT", "2m"),
            ("MCP_BRIDGE_MEMORY", "1g"),
            ("MCP_BRIDGE_PIDS", "many"),
            ("MCP_BRIDGE_CPUS", "1.5"),
            ("MCP_BRIDGE_RUNTIME", "podman"),
            ("MCP_BRIDGE_OUTPUT_MODE", "TOON"),
        ]);
        assert_eq!((settings.seconds, settings.most_seconds), (60, 120));
        assert!(settings.is_toon && !read(&[]).is_toon);
        assert_eq!(settings.limits["memory"], "1g");
        assert_eq!(settings.limits["processes"], 128);
        assert_eq!(settings.limits["cpus"], 1.5);
        assert_eq!(settings.notes.len(), 1, "{:?}", settings.notes);
        assert_eq!(read(&[("MCP_BRIDGE_TIMEOUT", "900")]).seconds, 120);
    }

    #[test]
    fn every_variable_is_honoured_or_reported() {
        let known: Vec<_> = KNOWN.iter().map(|name| (*name, "1")).collect();
        let notes = read(&known).notes;
        assert_eq!(notes.len(), 2, "{notes:?}");
        let notes = read(&[
            ("MCP_BRIDGE_OUTPUT_MODE", "xml"),
            ("MCP_BRIDGE_STATE_DIR", "here"),
            ("MCP_BRIDGE_STATEDIR", "/there"),
            ("MCP_BRIDGE_IMAGE", "x"),
            ("MCP_BRIDGE_RUNTIME", ""),
        ])
        .notes;
        let expected = [
            "MCP_BRIDGE_IMAGE has no effect: MCP_BRIDGE_RUNTIME names neither podman nor docker",
            "MCP_BRIDGE_STATEDIR is not known and has no effect",
            "MCP_BRIDGE_STATE_DIR has no effect: it is not an absolute path",
            "MCP_BRIDGE_OUTPUT_MODE: `compact` or `toon` was expected",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn an_engine_is_named_by_its_name_or_its_path() {
        for (named, engine) in [
            ("podman", Some(IsolationChoice::Podman)),
            ("/usr/bin/docker", Some(IsolationChoice::Docker)),
            ("nerdctl", None),
            ("/", None),
        ] {
            assert_eq!(container_engine(named), engine, "{named}");
        }
    }
}
