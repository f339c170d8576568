//! A folder as a program: which of its files is run, and how.

use std::path::Path;

use serde_json::Value;

use super::beside::Folder;
use crate::language::Registry;

/// How a project is started.
pub struct Entry {
    /// Where in the folder its program is; a name that no file has for one that is made here.
    pub path: String,
    pub code: String,
    pub language: Option<&'static str>,
}

/// The names that a program to start has without an ending, the likeliest first.
const NAMES: [&str; 5] = ["main", "Main", "__main__", "index", "app"];

/// Finds what to run: a `main`, or what the files of its tools say.
pub fn find(folder: &Folder, registry: &Registry) -> Option<Entry> {
    let entries = folder.entries();
    main_file(folder, &entries, registry)
        .or_else(|| of_package_json(folder))
        .or_else(|| of_pyproject(folder))
        .or_else(|| of_go(folder, &entries))
        .or_else(|| at(folder, "src/main.rs"))
        .or_else(|| {
            ["Makefile", "makefile", "GNUmakefile"]
                .iter()
                .find_map(|name| at(folder, name))
        })
}

fn at(folder: &Folder, path: &str) -> Option<Entry> {
    let path = path.trim_start_matches("./");
    let code = folder.is_file(path).then(|| folder.text(path))??;
    Some(Entry {
        path: path.to_owned(),
        code,
        language: None,
    })
}

fn main_file(folder: &Folder, entries: &[String], registry: &Registry) -> Option<Entry> {
    NAMES.iter().find_map(|name| {
        let mut of_name = entries.iter().filter(|entry| {
            let is_known = matches!(registry.by_file_name(entry), Ok(Some(_)));
            is_known && Path::new(entry).file_stem().is_some_and(|it| it == *name)
        });
        of_name.find_map(|entry| at(folder, entry))
    })
}

/// `main`, or the file that `start` runs.
fn of_package_json(folder: &Folder) -> Option<Entry> {
    let package: Value = serde_json::from_str(&folder.text("package.json")?).ok()?;
    let start = package["scripts"]["start"].as_str().unwrap_or_default();
    let started = start.split_whitespace().find(|word| {
        let ending = Path::new(word).extension().and_then(|it| it.to_str());
        matches!(ending, Some("js" | "mjs" | "cjs" | "ts" | "mts" | "tsx"))
    });
    let main = package["main"].as_str();
    let named = started.into_iter().chain(main);
    let ended = main.map(|main| format!("{main}.js"));
    named
        .map(str::to_owned)
        .chain(ended)
        .find_map(|path| at(folder, &path))
}

/// The first of `[project.scripts]`, or the package of the project's name.
fn of_pyproject(folder: &Folder) -> Option<Entry> {
    let text = folder.text("pyproject.toml")?;
    let project: toml::Table = toml::from_str(&text).ok()?;
    let project = project.get("project")?.as_table()?;
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|it| it.is_alphanumeric() || "_.".contains(it))
    };
    let scripts = project.get("scripts").and_then(|it| it.as_table());
    let script = scripts.and_then(|it| it.iter().next());
    let place = script.and_then(|(_, it)| it.as_str()?.split_once(':'));
    let call = match place {
        Some((module, function)) if is_word(module) && is_word(function) => {
            let name = function.split('.').next()?;
            // What it takes itself for in its messages.
            let command = script.map(|(command, _)| command.replace('-', "_"));
            let command = command.filter(|it| is_word(it)).and(script);
            let named = command.map_or(String::new(), |(command, _)| {
                format!("sys.argv[0] = '{command}'\n")
            });
            format!("{named}from {module} import {name}\nsys.exit({function}())\n")
        }
        _ => {
            let name = project.get("name")?.as_str()?.replace('-', "_");
            let is_there = ["", "src/"]
                .iter()
                .any(|below| folder.is_file(&format!("{below}{name}/__main__.py")));
            if !is_word(&name) || !is_there {
                return None;
            }
            format!(
                "import runpy\nrunpy.run_module('{name}', run_name='__main__', alter_sys=True)\n"
            )
        }
    };
    let needs = project.get("dependencies").map(toml::Value::to_string);
    let block = needs.map_or(String::new(), |needs| {
        format!(
            "# /// script\n# dependencies = {}\n# ///\n",
            needs.replace('\n', " ")
        )
    });
    Some(Entry {
        path: "__hotcell__.py".to_owned(),
        code: format!("{block}import sys\nsys.path.insert(0, '/workspace/src')\n{call}"),
        language: Some("python"),
    })
}

/// The file with `main` among those of a Go module.
fn of_go(folder: &Folder, entries: &[String]) -> Option<Entry> {
    folder.text("go.mod")?;
    let programs = entries
        .iter()
        .filter(|entry| entry.ends_with(".go") && !entry.ends_with("_test.go"));
    programs
        .filter_map(|entry| at(folder, entry))
        .find(|it| it.code.contains("func main("))
}
