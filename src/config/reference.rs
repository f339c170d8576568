//! Every key of `config.toml`, once: what it takes, what holds without it and what it does.
//!
//! The list that `hotcell config` prints, its schema, `docs/config.md`, the file that `hotcell config edit` begins with and
//! the suggestions for unknown keys are all made from this table. A test compares it with what is read.

mod page;
mod schema;
mod table;

pub use self::page::{page, template};
pub use self::schema::schema;
pub use self::table::{GROUPS, SETTINGS, VARIABLES};
use crate::language::closeness;

/// One key of the file.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// With its tables: `packages.size`; `mount[].host` in a list of tables; `servers.NAME.url` in tables with names of their own.
    pub key: &'static str,
    pub kind: Kind,
    /// What holds without it, in TOML, or in words if it is not fixed.
    pub default: &'static str,
    /// A value to begin with, in TOML.
    pub example: &'static str,
    /// Variables that come before the file, and those that hold where it says nothing; of each the first that is set.
    pub over: &'static [&'static str],
    pub under: &'static [&'static str],
    pub says: &'static str,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Whole,
    Text,
    Path,
    /// `"512m"`.
    Size,
    /// A number, or one with a unit.
    Amount,
    List,
    /// A word or a list of words.
    Words,
    /// Texts by their names.
    Map,
    /// `true`, `false` or a list.
    Redact,
}

/// A table of the file and what it is about.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// As the keys begin that are in it; empty for those in no table.
    pub table: &'static str,
    pub says: &'static str,
    /// The page that has more, as in `hotcell help limits`.
    pub topic: Option<&'static str>,
}

/// What stands for a default where there is none.
pub const REQUIRED: &str = "required";

impl Kind {
    pub fn words(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Whole => "a whole number",
            Self::Text => "a text",
            Self::Path => "an absolute path",
            Self::Size => "a size, as in \"512m\"",
            Self::Amount => "a number, or a text with a unit",
            Self::List => "a list of texts",
            Self::Words => "a text, or a list of them",
            Self::Map => "a table of texts",
            Self::Redact => "true, false or a list",
        }
    }
}

impl Setting {
    /// Its key within its table.
    pub fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// The table that it is in.
    pub fn table(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(table, _)| table)
    }
}

/// The setting of a key as it stands in a file, where lists have numbers and servers have names.
pub fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| fits(setting.key, key))
}

/// What may be meant by a key that there is not: one beside it, or else one of the same name in another table.
pub fn nearest(key: &str) -> Option<String> {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let beside = SETTINGS.iter().filter(|it| fits(it.table(), table));
    let beside = beside.map(|it| (it.name(), join(table, it.name())));
    let within = |group: &'static Group| {
        let first = group.table.split('.').next().unwrap_or_default();
        let first = (table.is_empty() && !first.is_empty()).then_some(first);
        let inner = group.table.split_once('.').filter(|it| fits(it.0, table));
        first.or(inner.map(|it| it.1)).filter(|it| *it != "NAME")
    };
    let tables = GROUPS.iter().filter_map(within);
    let tables = tables.map(|it| it.trim_end_matches("[]"));
    let all = beside.chain(tables.map(|it| (it, join(table, it))));
    let near = all.filter_map(|(known, whole)| Some((closeness(name, known)?, whole)));
    let near = near.min().map(|(_, whole)| whole);
    // Or of another table, of this one's own before others.
    let elsewhere = || {
        let far = |it: &Setting| (!it.key.starts_with(table), closeness(name, it.name()));
        let all = SETTINGS.iter().filter(|it| far(it).1.is_some());
        all.min_by_key(|it| far(it)).map(|it| it.key.to_owned())
    };
    near.or_else(elsewhere)
}

fn join(table: &str, name: &str) -> String {
    match table {
        "" => name.to_owned(),
        table => format!("{table}.{name}"),
    }
}

/// Whether a key of a file is one of this pattern.
fn fits(pattern: &str, key: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('.'), key.split('.'));
    loop {
        return match (patterns.next(), parts.next()) {
            (None, None) => true,
            (Some("NAME"), Some(_)) => continue,
            (Some(pattern), Some(part)) => {
                let part = part.split('[').next().unwrap_or(part);
                if pattern.trim_end_matches("[]") == part {
                    continue;
                }
                false
            }
            _ => false,
        };
    }
}

#[cfg(test)]
mod tests;
