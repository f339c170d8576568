//! The order of modules in ARCHITECTURE.md is the one in the code: nothing uses a module above itself or beside itself.
//!
//! The order is a fenced block that begins with "```order": one line for each level, from top to bottom, names between
//! ` · `. Every top-level module of `src/` is in it once. The crate's root (`lib.rs`, `main.rs`) stands above all.

mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which level each module is on; the top is 0.
struct Order(BTreeMap<String, usize>);

#[test]
fn no_module_uses_one_above_or_beside_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let order = Order::read(&text).expect("a block that begins with ```order");
    let order = order.unwrap_or_else(|wrong| panic!("ARCHITECTURE.md: {wrong}"));
    let source = root.join("src");
    let mut wrong = order.compare(&modules(&source));
    for file in files(&source) {
        let inside = file.strip_prefix(&source).unwrap();
        let place = module_of(inside);
        let text = fs::read_to_string(&file).unwrap();
        for found in order.violations(&place, &text) {
            wrong.push(format!("src/{}:{found}", inside.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

impl Order {
    /// The block of a page, if it has one.
    fn read(page: &str) -> Option<Result<Self, String>> {
        let mut lines = page
            .lines()
            .skip_while(|line| line.trim_end() != "```order");
        lines.next()?;
        let mut levels = BTreeMap::new();
        for (level, line) in lines
            .take_while(|line| !line.starts_with("```"))
            .enumerate()
        {
            for name in line.split('·').map(str::trim) {
                if levels.insert(name.to_owned(), level).is_some() {
                    return Some(Err(format!("`{name}` is in the order twice")));
                }
            }
        }
        Some(Ok(Self(levels)))
    }

    /// What is missing in the order, and what is in it but not in `modules`.
    fn compare(&self, modules: &BTreeSet<String>) -> Vec<String> {
        let named: BTreeSet<String> = self.0.keys().cloned().collect();
        let missing = modules.difference(&named);
        let missing =
            missing.map(|name| format!("`{name}` is not in the order of ARCHITECTURE.md"));
        let strange = named.difference(modules);
        let strange =
            strange.map(|name| format!("ARCHITECTURE.md names `{name}`, which is no module"));
        missing.chain(strange).collect()
    }

    /// Each use in `source`, a file of the module `place`, that does not go down: its line and what is wrong with it.
    fn violations(&self, place: &[String], source: &str) -> Vec<String> {
        let Some((user, own)) = place
            .first()
            .and_then(|user| Some((user, self.0.get(user)?)))
        else {
            return Vec::new(); // the root, or a module that `compare` misses
        };
        let mut wrong = Vec::new();
        for used in paths::from_root(source, place.len()) {
            let (line, name) = (used.line, &used.name);
            match self.0.get(name) {
                _ if name == user => {}
                Some(level) if level > own => {}
                Some(level) if level == own => {
                    wrong.push(format!("{line}: `{user}` uses `{name}`, on its own level"));
                }
                Some(_) => wrong.push(format!("{line}: `{user}` uses `{name}`, above it")),
                None => wrong.push(format!("{line}: `{user}` uses the crate's root: `{name}`")),
            }
        }
        wrong
    }
}

/// The top-level modules below `src/`.
fn modules(source: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(source).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let names = paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    names
        .filter(|name| name != "lib" && name != "main")
        .collect()
}

/// The path of the module that a file holds: `egress/proxy/forward.rs` is `[egress, proxy, forward]`.
fn module_of(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let parts = parts.iter().map(|part| part.to_str().unwrap().to_owned());
    parts
        .filter(|part| !["lib", "main", "mod"].contains(&part.as_str()))
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n```order\ncli · mcp\nengine\nrun · egress\ncell\n```\n\nmore\n";

    fn wrong(place: &str, source: &str) -> Vec<String> {
        let order = Order::read(PAGE).unwrap().unwrap();
        order.violations(&module_of(Path::new(place)), source)
    }

    #[test]
    fn a_use_that_goes_down_is_fine_and_so_is_ones_own() {
        let source =
            "use crate::cell::Cell;\nuse crate::{cell, engine::{Engine, plan}};\nuse super::Own;\n";
        assert_eq!(wrong("engine/queue.rs", source), [""; 0]);
    }

    #[test]
    fn a_use_that_goes_up_or_sideways_is_found_with_its_line() {
        assert_eq!(
            wrong("run.rs", "//! Runs.\n\nuse crate::engine::Engine;\n"),
            ["3: `run` uses `engine`, above it"]
        );
        assert_eq!(
            wrong(
                "run.rs",
                "use crate::{\n    cell::Cell,\n    egress::{Proxy, self},\n};\n"
            ),
            ["3: `run` uses `egress`, on its own level"]
        );
        assert_eq!(
            wrong("cell.rs", "fn f(it: &crate::run::Run) {}\n"),
            ["1: `cell` uses `run`, above it"]
        );
    }

    #[test]
    fn tests_are_held_to_the_order_too() {
        let source =
            "#[cfg(test)]\nmod tests {\n    use super::super::cli::main;\n    use super::*;\n}\n";
        assert_eq!(wrong("cell.rs", source), ["3: `cell` uses `cli`, above it"]);
    }

    #[test]
    fn what_the_root_holds_is_above_everything() {
        let found = wrong("cell.rs", "fn f() { crate::hook(); }\n");
        assert_eq!(found, ["1: `cell` uses the crate's root: `hook`"]);
    }

    #[test]
    fn a_module_that_is_missing_or_twice_in_the_order_is_found() {
        let order = Order::read(PAGE).unwrap().unwrap();
        let modules = ["cli", "mcp", "engine", "run", "egress", "store"];
        let modules = modules.map(str::to_owned).into();
        assert_eq!(
            order.compare(&modules),
            [
                "`store` is not in the order of ARCHITECTURE.md",
                "ARCHITECTURE.md names `cell`, which is no module"
            ]
        );
        let twice = Order::read("```order\na · b\nb\n```").unwrap().err();
        assert_eq!(twice.unwrap(), "`b` is in the order twice");
        assert!(Order::read("# Page\n\n```\na\n```\n").is_none());
    }
}
