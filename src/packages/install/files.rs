//! What an installer reads: wishes or a lock, as files of its ecosystem's own kind.

use crate::packages::lock::Lock;
use crate::packages::requirement::{Ecosystem, Requirement};
use crate::request::{CellPath, InputFile};

/// The list, and what must lie beside it.
pub type Files = (InputFile, Option<InputFile>);

/// What is wanted.
pub fn wishes(ecosystem: Ecosystem, wanted: &[Requirement]) -> Files {
    match ecosystem {
        Ecosystem::Pypi => {
            let lines: String = wanted.iter().map(|it| format!("{it}\n")).collect();
            (InputFile::from_bytes(cell_path("packages.in"), lines), None)
        }
        Ecosystem::Npm => {
            let pairs = wanted
                .iter()
                .map(|it| (it.name().to_owned(), it.versions().into()));
            let dependencies = pairs.collect::<serde_json::Map<String, serde_json::Value>>();
            (package_json(dependencies.into()), None)
        }
    }
}

/// A lock, and for npm the list that it was made from, which npm wants beside it.
pub fn lock(ecosystem: Ecosystem, lock: &Lock) -> Files {
    let file = |path| InputFile::from_bytes(cell_path(path), lock.text.as_bytes());
    match ecosystem {
        Ecosystem::Pypi => (file("packages.lock"), None),
        Ecosystem::Npm => {
            let read: serde_json::Value = serde_json::from_str(&lock.text).unwrap_or_default();
            let list = package_json(read["packages"][""]["dependencies"].clone());
            (file("out/tree/package-lock.json"), Some(list))
        }
    }
}

fn package_json(dependencies: serde_json::Value) -> InputFile {
    let text = serde_json::json!({ "private": true, "dependencies": dependencies });
    InputFile::from_bytes(cell_path("out/tree/package.json"), text.to_string())
}

pub fn cell_path(path: &str) -> CellPath {
    CellPath::parse(path).expect("a fixed good path")
}
