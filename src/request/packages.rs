//! The packages that a caller names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RequestError;

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
    /// What an earlier result had, exactly.
    Lock(String),
}

/// More than any list that makes sense.
const MOST: usize = 1000;
const LONGEST_LOCK: usize = 1 << 20;

impl AskedPackages {
    /// Whether the caller named something.
    pub fn is_asked(&self) -> bool {
        match self {
            Self::Detect => false,
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Lock(_) => true,
        }
    }

    pub(super) fn check(&self) -> Result<(), RequestError> {
        let too_long = |what: &str, most| RequestError::TooLong {
            what: what.to_owned(),
            most,
        };
        match self {
            Self::Lock(lock) if lock.len() > LONGEST_LOCK => {
                Err(too_long("the lock", LONGEST_LOCK))
            }
            Self::List(list) if list.len() > MOST => Err(too_long("the list of packages", MOST)),
            Self::Map(map) if map.len() > MOST => Err(too_long("the list of packages", MOST)),
            _ => Ok(()),
        }
    }
}
