//! What an installer reads: wishes or a lock, as files of its ecosystem's own kind.

use crate::packages::Wishes;
use crate::packages::lock::Lock;
use crate::packages::requirement::{Ecosystem, Requirement};
use crate::request::{CellPath, InputFile};

/// What an installer is given.
pub struct Files {
    pub list: InputFile,
    /// What must lie beside it.
    pub beside: Option<InputFile>,
    /// What its command gets as `{wanted...}`.
    pub words: Vec<String>,
}

impl Files {
    fn new(path: &str, text: impl Into<Vec<u8>>) -> Self {
        Self {
            list: InputFile::from_bytes(cell_path(path), text),
            beside: None,
            words: Vec::new(),
        }
    }

    fn with(self, path: &str, text: impl Into<Vec<u8>>) -> Self {
        let beside = Some(InputFile::from_bytes(cell_path(path), text));
        Self { beside, ..self }
    }
}

/// What is wanted; and `kept`, in which versions some packages must be if they are needed.
pub fn wishes(
    ecosystem: Ecosystem,
    wishes: &Wishes,
    with_optional: bool,
    kept: &[Requirement],
) -> Files {
    let wanted = wishes.all(with_optional);
    match ecosystem {
        Ecosystem::Pypi => {
            let lines = |list: &[Requirement]| list.iter().map(|it| format!("{it}\n")).collect();
            let (wanted, kept): (String, String) = (lines(&wanted), lines(kept));
            Files::new("packages.in", wanted).with("packages.keep", kept)
        }
        Ecosystem::Npm => {
            let pairs = wanted
                .iter()
                .map(|it| (it.name().to_owned(), it.versions().into()));
            let dependencies = pairs.collect::<serde_json::Map<String, serde_json::Value>>();
            Files::new("out/tree/package.json", package_json(dependencies.into()))
        }
        Ecosystem::Crates => Files::new("out/tree/Cargo.toml", cargo_toml(&wanted)),
        Ecosystem::Go => {
            let own = "package main\n".to_owned();
            let imports = wishes.known.iter().map(|it| it.package.name());
            let code = imports.fold(own, |code, path| format!("{code}import _ \"{path}\"\n"));
            // What a program imports is had in the versions that are named, if there are any.
            let named = wishes.named.iter().map(ToString::to_string);
            Files {
                words: [".".to_owned()].into_iter().chain(named).collect(),
                ..Files::new("out/tree/go.mod", GO_MOD).with("out/tree/main.go", code)
            }
        }
    }
}

/// The module that all is installed for. Go adds its own version to it.
const GO_MOD: &str = "module main\n";

/// A lock, and the list that it was made from where that is wanted beside it.
pub fn lock(ecosystem: Ecosystem, lock: &Lock) -> Files {
    let text = lock.text.as_bytes();
    match ecosystem {
        Ecosystem::Pypi => Files::new("packages.lock", text),
        Ecosystem::Npm => {
            let read: serde_json::Value = serde_json::from_str(&lock.text).unwrap_or_default();
            let list = package_json(read["packages"][""]["dependencies"].clone());
            Files::new("out/tree/package-lock.json", text).with("out/tree/package.json", list)
        }
        Ecosystem::Crates => {
            let lines = lock.text.lines().filter_map(|it| it.strip_prefix("# "));
            let wanted = lines.filter_map(|it| Requirement::parse(it, ecosystem).ok());
            let list = cargo_toml(&wanted.collect::<Vec<_>>());
            Files::new("out/tree/Cargo.toml", list).with("out/tree/Cargo.lock", text)
        }
        Ecosystem::Go => {
            let (version, sums) = lock.text.split_once('\n').unwrap_or_default();
            let pairs = lock.installed.iter().filter_map(|it| it.split_once("=="));
            let own = format!("{GO_MOD}{version}\n");
            let list = pairs.fold(own, |list, (path, version)| {
                format!("{list}require {path} {version}\n")
            });
            Files::new("out/tree/go.mod", list).with("out/tree/go.sum", sums)
        }
    }
}

/// The package that a program is built as, with what it was made from for the lock.
fn cargo_toml(wanted: &[Requirement]) -> String {
    let asked: String = wanted.iter().map(|it| format!("# {it}\n")).collect();
    let line = |it: &Requirement| {
        let features: Vec<String> = it.extras().map(|it| format!("\"{it}\"")).collect();
        let (name, versions, features) = (it.name(), it.versions(), features.join(", "));
        format!("{name} = {{ version = \"{versions}\", features = [{features}] }}\n")
    };
    let lines: String = wanted.iter().map(line).collect();
    format!(
        "{asked}[package]\nname = \"main\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
        [[bin]]\nname = \"main\"\npath = \"main.rs\"\n\n[dependencies]\n{lines}"
    )
}

fn package_json(dependencies: serde_json::Value) -> String {
    serde_json::json!({ "private": true, "dependencies": dependencies }).to_string()
}

pub fn cell_path(path: &str) -> CellPath {
    CellPath::parse(path).expect("a fixed good path")
}
