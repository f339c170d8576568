//! The packages that a caller names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestError;

/// Whose names and versions packages have, and how programs ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecosystem {
    Pypi,
    Npm,
    Go,
    Crates,
}

impl Ecosystem {
    /// The one that is meant by a list for a program whose language has none.
    pub const USUAL: Self = Self::Pypi;

    fn parse(name: &str) -> Option<Self> {
        Self::deserialize(Value::from(name)).ok()
    }

    /// As requests call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pypi => "pypi",
            Self::Npm => "npm",
            Self::Go => "go",
            Self::Crates => "crates",
        }
    }

    /// As people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pypi => "PyPI",
            Self::Npm => "npm",
            Self::Go => "Go",
            Self::Crates => "Rust",
        }
    }
}

/// Which packages a program gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedPackages {
    /// What it imports.
    #[default]
    Detect,
    /// These, and what it imports; none at all if there is none.
    List(Vec<String>),
    /// The same, and which package an import comes from.
    Map(BTreeMap<String, String>),
    /// A list for each registry.
    Lists(BTreeMap<Ecosystem, Vec<String>>),
    /// What an earlier result had, exactly.
    Lock(String),
}

/// More than any list that makes sense.
const MOST: usize = 1000;
const LONGEST_LOCK: usize = 1 << 20;

impl AskedPackages {
    /// A list, a list for each registry, a map from imports, or the lock of an earlier result. None if it is nothing of these.
    pub fn from_json(value: Value) -> Option<Self> {
        match value {
            Value::String(lock) => Some(Self::Lock(lock)),
            Value::Array(_) => serde_json::from_value(value).ok().map(Self::List),
            Value::Object(pairs) if pairs.values().any(Value::is_array) => {
                let lists = pairs.into_iter().map(|(name, list)| {
                    Some((Ecosystem::parse(&name)?, serde_json::from_value(list).ok()?))
                });
                lists.collect::<Option<_>>().map(Self::Lists)
            }
            map => serde_json::from_value(map).ok().map(Self::Map),
        }
    }

    /// A list, a map from imports or lists for registries as JSON, as command lines have it.
    pub fn from_json_text(text: &str) -> Option<Self> {
        let read = serde_json::from_str(text).ok().and_then(Self::from_json);
        read.filter(|it| !matches!(it, Self::Lock(_)))
    }

    /// The registries that something is asked of, if what names none is for `plain`.
    pub fn ecosystems(&self, plain: Ecosystem) -> Vec<Ecosystem> {
        let is_asked = match self {
            Self::Detect => false,
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Lists(lists) => {
                let named = lists.iter().filter(|(_, list)| !list.is_empty());
                return named.map(|(from, _)| *from).collect();
            }
            Self::Lock(lock) => match joined_locks(lock) {
                Some(locks) => return locks.into_keys().collect(),
                None => true,
            },
        };
        is_asked.then_some(plain).into_iter().collect()
    }

    /// What is asked of one registry, if what names none is for `plain`.
    pub fn of(&self, from: Ecosystem, plain: Ecosystem) -> Cow<'_, Self> {
        match self {
            Self::Lists(lists) => Cow::Owned(match lists.get(&from) {
                Some(list) => Self::List(list.clone()),
                None => Self::Detect,
            }),
            Self::Lock(lock) => match joined_locks(lock) {
                Some(mut locks) => Cow::Owned(match locks.remove(&from) {
                    Some(lock) => Self::Lock(lock),
                    // A lock has said all.
                    None => Self::List(Vec::new()),
                }),
                None if from == plain => Cow::Borrowed(self),
                None => Cow::Owned(Self::Detect),
            },
            _ if from == plain => Cow::Borrowed(self),
            _ => Cow::Owned(Self::Detect),
        }
    }

    pub(super) fn check(&self) -> Result<(), RequestError> {
        let too_long = |what: &str, most| RequestError::TooLong {
            what: what.to_owned(),
            most,
        };
        let named = match self {
            Self::Detect | Self::Lock(_) => 0,
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Lists(lists) => lists.values().map(Vec::len).sum(),
        };
        match self {
            Self::Lock(lock) if lock.len() > LONGEST_LOCK => {
                Err(too_long("the lock", LONGEST_LOCK))
            }
            _ if named > MOST => Err(too_long("the list of packages", MOST)),
            _ => Ok(()),
        }
    }
}

/// The locks of several registries as one, if that is needed to tell whose they are: a single one that is of `plain` is itself.
pub fn join_locks(locks: BTreeMap<Ecosystem, String>, plain: Ecosystem) -> String {
    match locks.get(&plain).filter(|_| locks.len() == 1) {
        Some(lock) => lock.clone(),
        None => serde_json::to_string(&locks).unwrap_or_default(),
    }
}

/// The opposite. npm's own is JSON too, with other names in it.
fn joined_locks(lock: &str) -> Option<BTreeMap<Ecosystem, String>> {
    let is_object = lock.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(lock).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PYPI: Ecosystem = Ecosystem::Pypi;
    const NPM: Ecosystem = Ecosystem::Npm;

    #[test]
    fn lists_of_registries_are_told_from_a_map_of_imports() {
        let list =
            |names: &[&str]| AskedPackages::List(names.iter().map(|it| (*it).into()).collect());
        let read = |value: Value| AskedPackages::from_json(value).unwrap();
        let lists = read(json!({"npm": ["a"], "pypi": ["b", "c"], "go": []}));
        assert_eq!(lists.ecosystems(PYPI), [PYPI, NPM]);
        assert_eq!(*lists.of(NPM, PYPI), list(&["a"]));
        assert_eq!(*lists.of(PYPI, NPM), list(&["b", "c"]));
        assert_eq!(*lists.of(Ecosystem::Crates, PYPI), AskedPackages::Detect);
        // Whoever names none of a registry wants none of it.
        assert_eq!(*lists.of(Ecosystem::Go, PYPI), list(&[]));
        let map = read(json!({"npm": "some-package"}));
        assert!(matches!(map, AskedPackages::Map(_)));
        assert_eq!(*map.of(NPM, PYPI), AskedPackages::Detect);
        for wrong in [
            json!({"npm": ["a"], "cv2": "b"}),
            json!({"gems": ["a"]}),
            json!({"npm": [1]}),
            json!([1]),
            json!(1),
        ] {
            assert_eq!(AskedPackages::from_json(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn locks_of_several_registries_are_one_text_and_come_apart_again() {
        let npm = r#"{"packages": {}}"#.to_owned();
        let both = BTreeMap::from([(NPM, npm.clone()), (PYPI, "a==1".to_owned())]);
        let joined = AskedPackages::Lock(join_locks(both, NPM));
        assert_eq!(joined.ecosystems(NPM), [PYPI, NPM]);
        assert_eq!(*joined.of(NPM, NPM), AskedPackages::Lock(npm.clone()));
        assert_eq!(*joined.of(PYPI, NPM), AskedPackages::Lock("a==1".into()));
        assert_eq!(*joined.of(Ecosystem::Go, NPM), AskedPackages::List(vec![]));
        // One alone is what its installer writes, where that is what a plain lock means.
        let one = || BTreeMap::from([(NPM, npm.clone())]);
        assert_eq!(join_locks(one(), NPM), npm);
        let lent = AskedPackages::Lock(join_locks(one(), PYPI));
        assert_eq!(lent.ecosystems(PYPI), [NPM]);
        assert_eq!(*lent.of(NPM, PYPI), AskedPackages::Lock(npm));
    }
}
