//! Packages: found by what a program imports, installed once, in a cell, and seen read-only.
//!
//! The registry is the test's own, on loopback, so that what it is asked can be counted; `real`
//! has the real one, and `hostile` what a registry or a package may try.

mod ahead;
mod go;
pub mod hostile;
mod kept;
mod lent;
mod npm;
mod real;
mod refused;
pub mod registry;
mod rust;
mod told;
mod wanted;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use self::registry::{Registry, wheel};
use crate::support::{Answer, Hotcell, PATH, Running, anyone, everyone, has, open_to_all, skip};

/// A folder whose `bin` has uv, fetched once by our own recipe.
pub fn installer() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let bring = || {
        bring(
            "uv",
            PATH,
            &["-l", "python", "--package", "bringer", "-c", "0"],
        )
    };
    FOLDER.get_or_init(bring).as_deref()
}

/// Has a run with this `PATH` fetch an installer, and keeps it in `bin` of a folder for all.
fn bring(tool: &str, path: &str, arguments: &[&str]) -> Option<PathBuf> {
    let hotcell = anyone()?;
    let registry = Registry::start();
    registry.add("bringer", "1.0", OLD, &wheel("bringer", "1.0", &[], &[]));
    let package = r#"{ "name": "bringer", "version": "1.0.0" }"#.to_owned();
    let package = registry::tarball(&[("package/package.json", package)]);
    registry.publish("bringer", "1.0.0", serde_json::json!({}), &package);
    let mut command = command(&hotcell, &registry, None);
    command.env("PATH", path).arg("run").args(arguments);
    let answer = Running::start(&mut command).finish();
    let bin = hotcell.home().join(".local/share/hotcell/runtimes/bin");
    let found = bin.join(tool);
    if !found.exists() {
        skip(&format!("{tool} cannot be fetched: {}", answer.err()));
        return None;
    }
    let folder = tempfile::Builder::new()
        .prefix("it-tool-")
        .tempdir()
        .expect("a folder")
        .keep();
    std::fs::create_dir(folder.join("bin")).expect("a folder");
    std::fs::copy(found, folder.join("bin").join(tool)).expect("a copy");
    for path in [
        folder.clone(),
        folder.join("bin"),
        folder.join("bin").join(tool),
    ] {
        open_to_all(&path);
    }
    Some(folder)
}

pub const OLD: &str = "2020-01-01T00:00:00Z";

/// `hotcell` with this registry and no other.
pub fn command(hotcell: &Hotcell, registry: &Registry, installer: Option<&Path>) -> Command {
    let mut command = hotcell.command();
    command
        .env("HOTCELL_PYPI_INDEX", registry.pypi())
        .env("HOTCELL_NPM_REGISTRY", registry.npm())
        .env("HOTCELL_GO_PROXY", registry.go())
        .env("HOTCELL_CRATES_INDEX", registry.crates());
    if let Some(folder) = installer {
        let path = format!("{}/bin:{}", folder.display(), hotcell.path());
        command.env("PATH", path);
    }
    command
}

/// `hotcell run` in Python, to its end.
pub fn run(hotcell: &Hotcell, registry: &Registry, arguments: &[&str]) -> Answer {
    let mut command = command(hotcell, registry, installer());
    Running::start(command.args(["run", "-l", "python"]).args(arguments)).finish()
}

pub fn json(hotcell: &Hotcell, registry: &Registry, arguments: &[&str]) -> Value {
    run(hotcell, registry, &[&["--json"], arguments].concat()).json()
}

fn tiny(version: &str) -> Vec<u8> {
    wheel(
        "tinything",
        version,
        &[("tinything/__init__.py", &format!("VERSION = '{version}'\n"))],
        &[],
    )
}

const PROGRAM: &str = "import tinything; print(tinything.VERSION)";

#[test]
fn what_a_program_imports_is_installed_once_and_then_nobody_is_asked() {
    if !has("python3") || installer().is_none() {
        return;
    }
    for hotcell in everyone() {
        installs_once(&hotcell);
    }
}

pub fn installs_once(hotcell: &Hotcell) {
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let first = json(hotcell, &registry, &["-c", PROGRAM]);
    assert_eq!(first["stdout"], "1.0\n", "{}: {first}", hotcell.name);
    assert_eq!(first["packages"]["cached"], false, "{first}");
    assert_eq!(
        first["packages"]["installed"],
        serde_json::json!(["tinything==1.0"])
    );
    assert!(
        first["notes"][0]
            .as_str()
            .is_some_and(|it| it.starts_with("installed tinything 1.0")),
        "{first}"
    );

    let asked = registry.asked();
    assert!(asked > 0);
    for offline in [&[][..], &["--offline"]] {
        let again = json(hotcell, &registry, &[offline, &["-c", PROGRAM]].concat());
        assert_eq!(
            (&again["stdout"], &again["packages"]["cached"]),
            (&first["stdout"], &true.into()),
            "{again}"
        );
    }
    assert_eq!(registry.asked(), asked, "a second run asked the registry");

    // A program that needs nothing asks nobody either.
    let plain = json(hotcell, &registry, &["-c", "import json, os; print(1)"]);
    assert_eq!(
        (&plain["stdout"], plain.get("packages")),
        (&"1\n".into(), None)
    );
    assert_eq!(registry.asked(), asked);
}

#[test]
fn programs_that_first_need_the_same_at_once_install_it_once() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    registry.add(
        "othermodule",
        "1.0",
        OLD,
        &wheel("othermodule", "1.0", &[("othermodule.py", "")], &[]),
    );
    // How often an install fetches its file.
    assert_eq!(
        run(&hotcell, &registry, &["-c", "import othermodule"]).code,
        Some(0)
    );
    let once = registry.count("othermodule-1.0-py3-none-any.whl");
    let start = || {
        let mut command = command(&hotcell, &registry, installer());
        Running::start(command.args(["run", "-l", "python", "-c", PROGRAM]))
    };
    let running: Vec<Running> = (0..4).map(|_| start()).collect();
    for answer in running.into_iter().map(Running::finish) {
        assert_eq!(answer.out(), "1.0\n", "{}", answer.err());
    }
    assert_eq!(registry.count("tinything-1.0-py3-none-any.whl"), once);
}
