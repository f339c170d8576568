//! Scripts in the catalog of the server: which may be in it, and what changes.

use std::collections::BTreeMap;

use super::complain;
use crate::mcp::{Catalog, Change};
use crate::publish::front_matter::Kind;
use crate::publish::script::Script;

/// What a script is listed among, and its name or address there.
pub type Key = (Group, String);
pub type Scripts = BTreeMap<Key, Script>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Group {
    pub fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Tool => Self::Tools,
            Kind::Prompt => Self::Prompts,
            Kind::Resource(template) if template.is_template() => Self::Templates,
            Kind::Resource(_) => Self::Resources,
        }
    }

    fn change(self) -> Change {
        match self {
            Self::Tools => Change::Tools,
            Self::Prompts => Change::Prompts,
            Self::Resources | Self::Templates => Change::Resources,
        }
    }
}

/// What clients have to be told: lists that differ, and resources with new content.
pub fn changes(before: &Scripts, after: &Scripts) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut note = |change| {
        if !changes.contains(&change) {
            changes.push(change);
        }
    };
    for key in before.keys().chain(after.keys()) {
        match (before.get(key), after.get(key)) {
            (Some(old), Some(new)) if old.front().listing == new.front().listing => {
                if key.0 == Group::Resources && !old.is_same(new) {
                    note(Change::Updated(key.1.clone()));
                }
            }
            _ => note(key.0.change()),
        }
    }
    changes
}

/// The scripts whose names are free; the others are complained about.
pub fn choose(found: &Scripts, is_free: impl Fn(&Key) -> bool) -> Scripts {
    let free = |(key, script): &(&Key, &Script)| {
        let free = is_free(key);
        if !free {
            complain(script.file_name(), &format!("`{}` is taken", key.1));
        }
        free
    };
    let chosen = found.iter().filter(free);
    chosen
        .map(|(key, script)| (key.clone(), script.clone()))
        .collect()
}

pub fn is_same(one: &Scripts, other: &Scripts) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.0 == other.0 && one.1.is_same(other.1))
}

pub fn is_free(catalog: &Catalog, (group, key): &Key) -> bool {
    !match group {
        Group::Tools => catalog.tools.contains_key(key),
        Group::Prompts => catalog.prompts.contains_key(key),
        Group::Resources => catalog.resources.contains_key(key),
        Group::Templates => catalog.templates.contains_key(key),
    }
}

pub fn add(catalog: &mut Catalog, scripts: &Scripts) {
    for ((group, _), script) in scripts {
        match group {
            Group::Tools => catalog.add_tool(script.clone()),
            Group::Prompts => catalog.add_prompt(script.clone()),
            Group::Resources | Group::Templates => catalog.add_resource(script.clone()),
        }
    }
}

pub fn remove(catalog: &mut Catalog, (group, key): &Key) {
    match group {
        Group::Tools => drop(catalog.tools.remove(key)),
        Group::Prompts => drop(catalog.prompts.remove(key)),
        Group::Resources => drop(catalog.resources.remove(key)),
        Group::Templates => drop(catalog.templates.remove(key)),
    }
}
