//! What goes to registries of packages: installed from its files, with nothing to be downloaded.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{VERSION, file, packages, succeed, works};
use crate::support::{PATH, has};

#[test]
fn the_npm_package_starts_the_program_of_its_platform_and_runs_no_script() {
    if !has("npm") {
        return;
    }
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let home = tempfile::tempdir().unwrap();
    let npm = |words: &[&str]| {
        let mut command = Command::new("npm");
        command.args(words).current_dir(home.path());
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", home.path());
        command
    };
    let main = file(&format!("hotcell-{VERSION}.tgz"));
    let part = file(&format!("hotcell-linux-{machine}-{VERSION}.tgz"));
    fs::write(home.path().join("package.json"), "{\"private\": true}").unwrap();
    succeed(&mut npm(&[
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        &part,
        &main,
    ]));
    works(|words| npm(&[&["exec", "--offline", "--", "hotcell"], words].concat()));
    let meta = home.path().join("node_modules/hotcell/package.json");
    let meta: Value = serde_json::from_slice(&fs::read(meta).unwrap()).unwrap();
    assert_eq!(meta.get("scripts"), None);
    // An entry of a client names npx where npx started it: what that unpacked is gone some day.
    let packages = [&part, &main].map(|file| format!("--package={file}"));
    let words = ["exec", "--offline", "-y", &packages[0], &packages[1]];
    let install = ["--", "hotcell", "install", "cursor", "--dry-run"];
    let elsewhere = tempfile::tempdir().unwrap();
    let mut npx = npm(&[&words[..], &install].concat());
    let shown = succeed(npx.current_dir(elsewhere.path()));
    assert!(shown.contains("\"command\": \"npx\""), "{shown}");
    // The program's end is the end of what npm started.
    let mut failing = Command::new(home.path().join("node_modules/.bin/hotcell"));
    failing.args(["run", "-l", "lua", "-c", "os.exit(7)"]);
    assert_eq!(failing.status().unwrap().code(), Some(7));
    // Control: without the package of the platform it says so.
    fs::remove_dir_all(
        home.path()
            .join(format!("node_modules/hotcell-linux-{machine}")),
    )
    .unwrap();
    let output = npm(&["exec", "--offline", "--", "hotcell", "--version"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("there is no package"),
        "{said}"
    );
}

#[test]
fn the_wheel_is_installed_by_pip_with_both_names() {
    if !has("python3") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("venv");
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(&place)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let entries = fs::read_dir(packages()).unwrap().flatten();
    let wheel = entries
        .map(|it| it.path())
        .find(|it| it.extension().is_some_and(|it| it == "whl"));
    let pip = [
        "install",
        "--quiet",
        "--no-index",
        "--disable-pip-version-check",
    ];
    succeed(
        Command::new(place.join("bin/pip"))
            .args(pip)
            .arg(wheel.expect("a wheel")),
    );
    for name in ["hotcell", "hotcell-mcp"] {
        works(|words| {
            let mut command = Command::new(place.join("bin").join(name));
            command.args(words).env("HOME", home.path());
            command
        });
    }
    works(|words| {
        let mut command = Command::new(place.join("bin/python"));
        command
            .args(["-m", "hotcell_mcp"])
            .args(words)
            .env("HOME", home.path());
        command
    });
    assert!(place.join("share/man/man1/hotcell.1").exists());
}
