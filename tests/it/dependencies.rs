//! What we depend on is what `deny.toml` allows: licences, one version of each crate, crates.io alone.
//!
//! The same rules as `cargo deny`, which reads the same file, without the minutes that it takes to build.
//! Advisories are its own: they need a database that changes by the day.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A crate in our tree.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: Vec<u64>,
    licence: String,
    /// Where it comes from, if not from crates.io.
    source: Option<String>,
}

#[test]
fn every_dependency_is_one_that_deny_toml_allows() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("deny.toml")).unwrap();
    let rules: toml::Table = text.parse().unwrap();
    let packages = packages();
    assert!(packages.len() > 100, "{} packages", packages.len());
    let mut wrong = forbidden(
        &packages,
        &list(&rules["licenses"]["allow"], |it| it.as_str()),
    );
    wrong.extend(repeated(
        &packages,
        &list(&rules["bans"]["skip"], |it| it["crate"].as_str()),
    ));
    wrong.extend(foreign(&packages));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn list(value: &toml::Value, text: fn(&toml::Value) -> Option<&str>) -> BTreeSet<&str> {
    let all = value.as_array().expect("a list").iter();
    all.map(|it| text(it).expect("a text")).collect()
}

/// Everything that goes into the workspace on this target, tests and build scripts included.
fn packages() -> BTreeSet<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--offline"])
        .args(["--edges=normal,build,dev", "--prefix=none", "--no-dedupe"])
        .args(["--format", "{p}|{l}"])
        .current_dir(ROOT)
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| package(line).expect(line)).collect()
}

/// `name v1.2.3 (proc-macro) (source)|licence`.
fn package(line: &str) -> Option<Package> {
    let (described, licence) = line.split_once('|')?;
    let mut words = described.splitn(3, ' ');
    let (name, version, rest) = (words.next()?, words.next()?, words.next().unwrap_or(""));
    let numbers = version.strip_prefix('v')?.split(['-', '+']).next()?;
    let source = rest.trim_start_matches("(proc-macro)").trim();
    Some(Package {
        name: name.to_owned(),
        version: numbers
            .split('.')
            .map(|it| it.parse().ok())
            .collect::<Option<_>>()?,
        licence: licence.to_owned(),
        source: (!source.is_empty()).then(|| source.trim_matches(['(', ')']).to_owned()),
    })
}

fn forbidden(packages: &BTreeSet<Package>, allowed: &BTreeSet<&str>) -> Vec<String> {
    let wrong = packages.iter().filter(|it| !permits(&it.licence, allowed));
    wrong
        .map(|it| format!("{}: the licence `{}` is not allowed", it.name, it.licence))
        .collect()
}

/// Older versions beside a newer one that are not skipped, and skips of what is not there.
fn repeated(packages: &BTreeSet<Package>, skipped: &BTreeSet<&str>) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&[u64]>> = BTreeMap::new();
    for package in packages {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
    }
    let mut older = BTreeSet::new();
    for (name, versions) in versions {
        let newest = versions.len() - 1;
        for version in versions.into_iter().take(newest) {
            let numbers: Vec<String> = version.iter().map(u64::to_string).collect();
            older.insert(format!("{name}@{}", numbers.join(".")));
        }
    }
    let new = older.iter().filter(|it| !skipped.contains(it.as_str()));
    let new =
        new.map(|it| format!("{it} is beside a newer version; fix that, or skip it with a reason"));
    let gone = skipped.iter().filter(|it| !older.contains(**it));
    new.chain(gone.map(|it| format!("deny.toml skips {it}, which is not there")))
        .collect()
}

fn foreign(packages: &BTreeSet<Package>) -> Vec<String> {
    let ours = |source: &str| Path::new(source).starts_with(ROOT);
    let sources = packages
        .iter()
        .filter_map(|it| Some((&it.name, it.source.as_deref()?)));
    let wrong = sources.filter(|(_, source)| !ours(source));
    wrong
        .map(|(name, source)| format!("{name} comes from {source}"))
        .collect()
}

/// Whether an SPDX expression can be met with these licences. `AND` binds closer than `OR`; `/` is an old `OR`.
fn permits(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (holds, rest) = either(&words, allowed);
    holds && rest.is_empty()
}

fn either<'a>(words: &'a [&'a str], allowed: &BTreeSet<&str>) -> (bool, &'a [&'a str]) {
    let (mut holds, mut rest) = both(words, allowed);
    while let ["OR", after @ ..] = rest {
        let next = both(after, allowed);
        (holds, rest) = (holds | next.0, next.1);
    }
    (holds, rest)
}

fn both<'a>(words: &'a [&'a str], allowed: &BTreeSet<&str>) -> (bool, &'a [&'a str]) {
    let (mut holds, mut rest) = single(words, allowed);
    while let ["AND", after @ ..] = rest {
        let next = single(after, allowed);
        (holds, rest) = (holds & next.0, next.1);
    }
    (holds, rest)
}

fn single<'a>(words: &'a [&'a str], allowed: &BTreeSet<&str>) -> (bool, &'a [&'a str]) {
    match words {
        ["(", inside @ ..] => match either(inside, allowed) {
            (holds, [")", rest @ ..]) => (holds, rest),
            (_, rest) => (false, rest),
        },
        [name, "WITH", exception, rest @ ..] => {
            let whole = format!("{name} WITH {exception}");
            (allowed.contains(whole.as_str()), rest)
        }
        [name, rest @ ..] => (allowed.contains(name.trim_end_matches('+')), rest),
        [] => (false, words),
    }
}

#[test]
fn a_licence_is_met_by_what_is_allowed_and_by_nothing_else() {
    let allowed = BTreeSet::from(["MIT", "ISC", "MPL-2.0", "Apache-2.0 WITH LLVM-exception"]);
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/GPL-3.0",
        "MIT AND ISC",
        "(GPL-3.0 OR MIT) AND ISC",
        "GPL-3.0 AND X OR MIT",
        "MPL-2.0+",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
    ] {
        assert!(permits(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND GPL-3.0",
        "Apache-2.0",
        "(MIT",
    ] {
        assert!(!permits(bad, &allowed), "{bad}");
    }
}

#[test]
fn an_older_version_must_be_skipped_and_a_skip_must_be_needed() {
    let tree = ["a v1.10.0|MIT", "a v1.9.0 (proc-macro)|MIT", "b v2.0.0|MIT"];
    let tree = tree.iter().map(|line| package(line).unwrap()).collect();
    assert_eq!(repeated(&tree, &BTreeSet::from(["a@1.9.0"])), [""; 0]);
    let wrong = repeated(&tree, &BTreeSet::from(["b@1.0.0"]));
    assert!(
        wrong[0].starts_with("a@1.9.0 ") && wrong[1].contains("b@1.0.0"),
        "{wrong:?}"
    );
}

#[test]
fn only_crates_io_and_this_repository_are_sources() {
    let own = format!("own v0.1.0 ({ROOT}/crates/own)|MIT");
    let git = "other v1.0.0 (proc-macro) (https://example.org/other?rev=1#1)|MIT";
    let tree = [own.as_str(), "plain v1.0.0|MIT", git].map(|line| package(line).unwrap());
    let wrong = foreign(&tree.into());
    assert_eq!(
        wrong,
        ["other comes from https://example.org/other?rev=1#1"]
    );
}
