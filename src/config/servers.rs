//! `[servers]`: one table for each server, and what is decided for all of them.
//!
//! A mistake in one entry is the matter of that server alone: others, and programs that call none, are as before.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::discovered::{Discovered, Looking, Places, sources};
use super::error::Mistake;
use super::expand::Variables;
use super::file::Amount;
use super::rules::{Pattern, Redaction, Rules};
use super::server::{Entry, Server, Transport};
use super::stamp::Stamp;
use super::tables::amount;
use super::{Config, FILE};
use crate::request::{parse_duration, parse_size};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ServerTable {
    command: Option<String>,
    args: Vec<String>,
    /// Variables for it beside the few that every program needs.
    env: BTreeMap<String, String>,
    /// Variables of hotcell's own environment for it.
    pass: Vec<String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    /// The variable of hotcell's own environment that has its token.
    bearer: Option<String>,
    #[serde(alias = "type")]
    transport: Option<Spanned<String>>,
    description: Option<String>,
    disabled: bool,
    idle: Option<Spanned<Amount>>,
    /// Tools, as in `get_*`.
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    /// Of one run.
    calls: Option<u64>,
    bytes: Option<Spanned<Amount>>,
    /// Of one call.
    timeout: Option<Spanned<Amount>>,
    /// Tools that MCP clients get as they are.
    expose: Vec<String>,
    redact: Option<Spanned<Redact>>,
}

/// All kinds of personal data or none, or these.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`true`, `false` or a list was expected")]
enum Redact {
    All(bool),
    Kinds(Vec<String>),
}

impl Redact {
    fn check(written: &Spanned<Self>) -> Result<Redaction, Mistake> {
        match written.get_ref() {
            Self::All(true) => Ok(Redaction::ALL),
            Self::All(false) => Ok(Redaction::default()),
            Self::Kinds(kinds) => {
                let expected =
                    || Mistake::at(written, "`email`, `phone` and `card` can be redacted");
                Redaction::of(kinds).ok_or_else(expected)
            }
        }
    }
}

/// The servers of a file by their names, and whether those of other programs' files are looked for too.
#[derive(Debug, Default)]
pub struct ServersTable {
    pub servers: Vec<(String, Server)>,
    pub discover: Option<bool>,
    pub redact: Redaction,
}

impl ServersTable {
    /// Reads them from the text of a file that is TOML.
    pub fn read(path: &Path, text: &str) -> Result<Self, Mistake> {
        let mut read = Self::default();
        let tables = DeTable::parse(text)?.into_inner();
        let named = |key: &Spanned<_>| *key.get_ref() == "servers";
        let table = tables.into_iter().find(|(key, _)| named(key));
        let Some((_, table)) = table else {
            return Ok(read);
        };
        let entries = match table.get_ref() {
            DeValue::Table(entries) => entries.clone(),
            _ => return Err(Mistake::at(&table, "a table was expected")),
        };
        for (name, entry) in entries {
            match (name.get_ref().as_ref(), entry.get_ref()) {
                ("discover", DeValue::Boolean(discover)) => read.discover = Some(*discover),
                ("discover", value) if !matches!(value, DeValue::Table(_)) => {
                    return Err(Mistake::at(&entry, "`true` or `false` was expected"));
                }
                ("redact", value) if !matches!(value, DeValue::Table(_)) => {
                    let span = entry.span();
                    let written = Redact::deserialize(ValueDeserializer::from(entry))?;
                    read.redact = Redact::check(&Spanned::new(span, written))?;
                }
                (name, _) => {
                    let name = name.to_owned();
                    let server = match one(path, entry) {
                        Ok(Some(server)) => server,
                        Ok(None) => continue,
                        Err(mistake) => {
                            Server::mistaken(mistake.located(path, text).to_string(), path)
                        }
                    };
                    read.servers.push((name, server));
                }
            }
        }
        read.servers.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(read)
    }
}

/// One entry; none if its owner does not want it now.
fn one(path: &Path, entry: Spanned<DeValue<'_>>) -> Result<Option<Server>, Mistake> {
    let span = entry.span();
    let table = ServerTable::deserialize(ValueDeserializer::from(entry))?;
    if table.disabled {
        return Ok(None);
    }
    let transport = match &table.transport {
        // It says no more than that there is a command.
        Some(text) if text.get_ref() == "stdio" => None,
        Some(text) => {
            let known = Transport::parse(text.get_ref());
            Some(known.ok_or_else(|| Mistake::at(text, "`http` or `sse` was expected"))?)
        }
        None => None,
    };
    let idle = amount(&table.idle, parse_duration)?;
    let patterns = |list: &[String]| list.iter().map(|it| Pattern::new(it)).collect();
    let rules = Rules {
        allow: patterns(&table.allow),
        ask: patterns(&table.ask),
        deny: patterns(&table.deny),
        calls: table.calls,
        bytes: amount(&table.bytes, parse_size)?,
        timeout: amount(&table.timeout, parse_duration)?,
        redact: table.redact.as_ref().map(Redact::check).transpose()?,
    };
    let entry = Entry {
        command: table.command.into_iter().chain(table.args).collect(),
        folder: table.cwd,
        env: table.env.into_iter().collect(),
        env_file: None,
        pass: table.pass,
        url: table.url,
        headers: table.headers.into_iter().collect(),
        bearer: table.bearer,
        transport,
        description: table.description,
        idle,
        rules,
        expose: table.expose,
    };
    let own = |name: &str| env::var(name).ok();
    let variables = Variables {
        own: &own,
        bare: false,
    };
    let resolved = entry.resolve(path, variables);
    resolved
        .map(Some)
        .map_err(|why| Mistake::at(&Spanned::new(span, ()), why))
}

impl Config {
    /// The servers whose tools programs may call: those of this file, and of other programs' files where that is allowed. Reads those.
    pub fn all_servers(&self) -> Vec<(String, Server)> {
        let mut all = self.servers.clone();
        if self.places().is_some() {
            let found = self.discovered();
            for complaint in &found.complaints {
                tracing::warn!(complaint, "a file of another program is not read");
            }
            all.extend(found.servers);
        }
        for (_, server) in &mut all {
            server.rules.redact.get_or_insert(self.redact);
        }
        all
    }

    /// Where servers are looked for beside our own file. What the owner has written comes before what a way to serve brings along.
    fn places(&self) -> Option<Places> {
        match self.discover {
            Some(true) => Some(Places::All),
            None if self.replaces_bridge => Some(Places::Bridge),
            _ => None,
        }
    }

    /// The servers that other programs have configured, as far as their files may be read, and what is wrong with these.
    pub fn discovered(&self) -> Discovered {
        let Some(places) = self.places() else {
            return Discovered::default();
        };
        let own = |name: &str| env::var(name).ok();
        let allowed = own("MCP_BRIDGE_ALLOW_SELF_SERVER").map(|it| it.trim().to_lowercase());
        let looking = Looking {
            own: &own,
            program: env::current_exe().ok(),
            with_ourselves: matches!(allowed.as_deref(), Some("1" | "true" | "yes")),
        };
        looking.discover(places, &self.servers)
    }

    /// Of the files that say which servers there are.
    pub fn servers_stamp(&self, folder: Option<&Path>) -> Stamp {
        let own = folder.map(|folder| folder.join(FILE));
        let variable = |name: &str| env::var(name).ok();
        let others = self.places().map(|places| sources(places, &variable));
        let others = others.unwrap_or_default();
        Stamp::of(own.into_iter().chain(others.into_iter().map(|it| it.path)))
    }
}

/// What is said of a key that no server has.
#[cfg(test)]
pub fn unknown_key() -> String {
    let read = toml::from_str::<ServerTable>("no_such_key = 1");
    read.err()
        .map_or_else(String::new, |error| error.message().to_owned())
}
