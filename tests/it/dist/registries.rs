//! What goes to registries of packages: installed from its files, with nothing to be downloaded.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{VERSION, file, has_tools, packages, succeed, works};
use crate::repl::{INTERRUPT, Terminal};
use crate::support::{Hotcell, PATH, has};

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
    let package = home.path().join("node_modules/hotcell");
    let meta = fs::read(package.join("package.json")).unwrap();
    let meta: Value = serde_json::from_slice(&meta).unwrap();
    assert_eq!(meta.get("scripts"), None);
    has_tools(&package.join("share"));
    let pages = meta["man"].as_array().unwrap();
    assert!(pages.contains(&"share/man/man1/hotcell-run.1".into()));
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
    // Ctrl-C reaches the script and the program, and is one Ctrl-C.
    let uid = rustix::process::getuid().as_raw();
    let script = Hotcell::of(&package.join("bin/hotcell.js"), "npm", uid);
    let modules = home.path().join("node_modules").display().to_string();
    let counts = "import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: print('heard', flush=True))\n\
                  print('up', flush=True)\nfor line in sys.stdin: print('lives', flush=True)";
    let words = ["run", "--no-tty", "-l", "python", "-c", counts];
    let mut terminal = Terminal::start(&script, &words, &[("NODE_PATH", &modules)]);
    terminal.wait_for("up");
    terminal.press(INTERRUPT);
    terminal.wait_for("heard");
    terminal.press("x\n");
    terminal.wait_for("lives");
    terminal.press(INTERRUPT);
    terminal.wait_for("cancelled");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(130));
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
    has_tools(&place.join("share"));
}
