//! What the imports of a program say about its packages, for each registry.

use std::collections::HashSet;

use super::{Found, MOST, Wishes};
use crate::packages::known_imports::{self, Known};
use crate::packages::python::{self, Need};
use crate::packages::{Ecosystem, Requirement, go, javascript, rust};

/// How many imports are looked at: each may ask the file system, and no program that somebody wrote has more.
const MOST_IMPORTS: usize = 1000;

pub(super) fn python_imports(
    code: &[impl AsRef<str>],
    is_own: &impl Fn(&str) -> bool,
    present: &impl Fn(&str) -> bool,
    wishes: &mut Wishes,
) {
    const PYPI: Ecosystem = Ecosystem::Pypi;
    let mut imports = Vec::new();
    let mut seen = HashSet::new();
    for (at, text) in code.iter().enumerate() {
        // The numbers of its tries are a file's own.
        let own = python::imports(text.as_ref()).into_iter();
        let own = own.map(|it| it.in_file(at));
        imports.extend(own.filter(|it| seen.insert(it.clone())));
    }
    imports.truncate(MOST_IMPORTS);
    // The tries whose first choice is here or can be had: their second is not needed.
    let mut served = HashSet::new();
    let mut here_too = Vec::new();
    for import in &imports {
        if known_imports::is_own(PYPI, import.top())
            || is_own(import.top())
            || is_own(&import.module)
        {
            if let Need::Optional(number) = import.need {
                served.insert(number);
            }
            continue;
        }
        let names = import.also.iter().chain([&import.module]);
        let mut rows: Vec<(&str, Known)> = names
            .filter_map(|name| known_imports::find(PYPI, name))
            .collect();
        // `from google.cloud import storage` has a row; that `google` has none says nothing then.
        if rows.iter().any(|row| matches!(row.1, Known::Package(_))) {
            rows.retain(|row| matches!(row.1, Known::Package(_)));
        }
        rows.sort_by_key(|row| row.0);
        rows.dedup_by_key(|row| row.0);
        let here = match rows.as_slice() {
            [] => present(import.top()),
            rows => rows.iter().all(|row| present(row.0)),
        };
        let known: Vec<Found> = rows
            .iter()
            .filter_map(|(module, known)| match known {
                Known::Package(package) if !present(module) => found(module, package),
                _ => None,
            })
            .collect();
        if here && import.need == Need::Plain {
            here_too.extend(rows.iter().filter_map(|(module, known)| match known {
                Known::Package(package) => found(module, package),
                Known::Never => None,
            }));
        }
        match import.need {
            _ if here => {}
            Need::Plain if rows.is_empty() => {
                let guess = found(import.top(), &import.top().replace('_', "-"));
                add(&mut wishes.guessed, guess);
            }
            Need::Plain => known
                .iter()
                .cloned()
                .for_each(|it| add(&mut wishes.known, Some(it))),
            Need::Fallback(number) if served.contains(&number) => {}
            _ => known
                .iter()
                .cloned()
                .for_each(|it| add(&mut wishes.optional, Some(it))),
        }
        if let Need::Optional(number) = import.need
            && (here || !known.is_empty())
        {
            served.insert(number);
        }
    }
    // Who changes the path knows of modules that we do not see.
    if code.iter().any(|text| text.as_ref().contains("sys.path")) {
        wishes.guessed.clear();
    }
    // What the runtime has was built for the versions it has. Beside packages that bring others
    // of those, all of it must come from one place.
    if !wishes.is_empty() {
        here_too
            .into_iter()
            .for_each(|it| add(&mut wishes.known, Some(it)));
    }
}

pub(super) fn node_imports(
    code: &[impl AsRef<str>],
    is_own: &impl Fn(&str) -> bool,
    wishes: &mut Wishes,
) {
    let packages = code
        .iter()
        .flat_map(|text| javascript::packages(text.as_ref()));
    for package in packages.take(MOST_IMPORTS) {
        if !known_imports::is_own(Ecosystem::Npm, &package.name) && !is_own(&package.name) {
            let text = format!("{}{}", package.name, package.version);
            if let Ok(requirement) = Requirement::parse(&text, Ecosystem::Npm) {
                add(
                    &mut wishes.guessed,
                    Some(Found {
                        module: package.name,
                        package: requirement,
                    }),
                );
            }
        }
    }
}

pub(super) fn rust_imports(
    code: &[impl AsRef<str>],
    is_own: &impl Fn(&str) -> bool,
    wishes: &mut Wishes,
) {
    const CRATES: Ecosystem = Ecosystem::Crates;
    for name in rust::crates(code).into_iter().take(MOST_IMPORTS) {
        if known_imports::is_own(CRATES, name.text) || is_own(name.text) {
            continue;
        }
        let (package, to) = match known_imports::find(CRATES, name.text) {
            Some((_, Known::Package(package))) => (package, &mut wishes.known),
            // A path in an expression may be of anything that has a name.
            None if name.is_used => (name.text, &mut wishes.guessed),
            _ => continue,
        };
        let package = Requirement::parse(package, CRATES).ok();
        let module = name.text.to_owned();
        add(to, package.map(|package| Found { module, package }));
    }
}

/// An import of Go says where its package comes from, so nothing about it is a guess. How old
/// that is only its author says, who could say anything.
pub(super) fn go_imports(code: &[impl AsRef<str>], own: &Option<String>, wishes: &mut Wishes) {
    const GO: Ecosystem = Ecosystem::Go;
    let imports = code.iter().flat_map(|text| go::imports(text.as_ref()));
    for path in imports.take(MOST_IMPORTS) {
        let rest = own.as_ref().and_then(|own| path.strip_prefix(own.as_str()));
        let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is_own || known_imports::is_own(GO, path) {
            continue;
        }
        let package = Requirement::parse(path, GO).ok();
        let found = package.filter(Requirement::is_bare).map(|package| Found {
            module: path.to_owned(),
            package,
        });
        add(&mut wishes.known, found);
    }
}

fn found(module: &str, package: &str) -> Option<Found> {
    // A module's name that no package could have is nobody's package.
    let package = Requirement::parse(package, Ecosystem::Pypi).ok()?;
    Some(Found {
        module: module.to_owned(),
        package,
    })
}

fn add(to: &mut Vec<Found>, found: Option<Found>) {
    // More are refused, whatever they are.
    if to.len() > MOST {
        return;
    }
    let is_new = |found: &Found| {
        let key = found.package.key();
        to.iter().all(|it| it.package.key() != key)
    };
    to.extend(found.filter(is_new));
}
