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
pub mod registry;
mod rust;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use self::registry::{Registry, wheel};
use crate::mcp::client::Client;
use crate::support::{
    Answer, Hotcell, PATH, PATIENCE, Running, anyone, eventually, everyone, has, open_to_all, skip,
};

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
fn a_lock_brings_the_same_versions_back() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let first = json(&hotcell, &registry, &["-c", PROGRAM]);
    let lock = first["packages"]["lock"].as_str().expect("a lock");
    let file = hotcell.write("lock.txt", lock);
    registry.add("tinything", "2.0", OLD, &tiny("2.0"));
    let remove = |_| {
        Running::start(command(&hotcell, &registry, None).args(["packages", "remove", "tinything"]))
            .finish()
    };
    assert_eq!(remove(0).out(), "removed tinything==1.0 (0.0 MB)\n");
    let file = file.to_str().expect("a path");
    let pinned = json(&hotcell, &registry, &["--lock", file, "-c", PROGRAM]);
    assert_eq!(
        (&pinned["stdout"], &pinned["packages"]["lock"]),
        (&"1.0\n".into(), &lock.into()),
        "{pinned}"
    );
    // Control: without the lock the newer one comes.
    let newer = json(&hotcell, &registry, &["-c", PROGRAM]);
    assert_eq!(newer["stdout"], "2.0\n", "{newer}");

    // Somebody who changes the file on the way is noticed.
    registry.replace(
        "tinything",
        "1.0",
        &wheel(
            "tinything",
            "1.0",
            &[("tinything/__init__.py", "VERSION = 'evil'\n")],
            &[],
        ),
    );
    remove(1);
    let changed = json(&hotcell, &registry, &["--lock", file, "-c", PROGRAM]);
    assert_eq!(changed["error"]["kind"], "package_not_found", "{changed}");
    let bad = hotcell.write(
        "bad.txt",
        "tinything==1.0\n--index-url=http://127.0.0.1:9\n",
    );
    let bad = json(
        &hotcell,
        &registry,
        &["--lock", bad.to_str().expect("a path"), "-c", PROGRAM],
    );
    assert_eq!(bad["error"]["kind"], "invalid_request", "{bad}");
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

#[test]
fn a_failure_says_what_was_wanted_and_why_it_cannot_be_had_and_nothing_runs() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let fails = |arguments: &[&str]| {
        let output = json(
            &hotcell,
            &registry,
            &[arguments, &["-c", "print('ran')\nimport tinything"]].concat(),
        );
        assert_eq!(
            (&output["status"], &output["stdout"]),
            (&"failed".into(), &"".into()),
            "{output}"
        );
        output["error"].clone()
    };
    let missing = fails(&["--package", "nowhere-to-be-found"]);
    assert_eq!(missing["kind"], "package_not_found");
    assert!(
        missing["message"]
            .as_str()
            .unwrap()
            .contains("nowhere-to-be-found was not found"),
        "{missing}"
    );
    let conflict = fails(&["--package", "tinything<1", "--package", "tinything>2"]);
    assert!(
        conflict["message"]
            .as_str()
            .unwrap()
            .contains("unsatisfiable"),
        "{conflict}"
    );
    let offline = fails(&["--offline", "--package", "tinything"]);
    assert!(
        offline["message"].as_str().unwrap().contains("offline"),
        "{offline}"
    );

    let mut lost = command(&hotcell, &registry, installer());
    lost.env("HOTCELL_PYPI_INDEX", "http://127.0.0.1:9/simple");
    let lost = Running::start(lost.args([
        "run",
        "--json",
        "-l",
        "python",
        "--package",
        "tinything",
        "-c",
        "0",
    ]))
    .finish()
    .json();
    assert_eq!(lost["error"]["kind"], "package_install", "{lost}");
    assert!(
        lost["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cannot reach the registry"),
        "{lost}"
    );
}

#[test]
fn on_a_full_disk_nothing_is_half_installed_and_nothing_runs() {
    if !has("python3") || installer().is_none() {
        return;
    }
    for hotcell in everyone() {
        let registry = Registry::start();
        let noise = "noise\n".repeat(1 << 19);
        let files = [
            ("bigthing/__init__.py", ""),
            ("bigthing/noise", noise.as_str()),
        ];
        registry.add(
            "bigthing",
            "1.0",
            OLD,
            &wheel("bigthing", "1.0", &files, &[]),
        );
        let folder = hotcell.make_folder("packages");
        // A disk of its own, in a mount namespace of its own.
        let script = format!(
            "mount -t tmpfs -o size=1m,mode=700 none {folder} || exit 99\n\
             $1 run -l python -c 'import bigthing; print(1)'; echo $?; ls {folder}/sets {folder}/staging\n\
             mount -t tmpfs -o size=64m,mode=700 none {folder} || exit 98\n\
             $1 run -l python -c 'import bigthing; print(1)'",
            folder = folder.display()
        );
        let mut command = Command::new("unshare");
        hotcell.dress(&mut command);
        let path = format!("{}/bin:{PATH}", installer().expect("it is there").display());
        command
            .env("PATH", path)
            .env("HOTCELL_PYPI_INDEX", registry.pypi())
            .env("HOTCELL_PACKAGES_DIR", &folder)
            .args([
                if hotcell.uid == 0 { "-m" } else { "-rm" },
                "sh",
                "-c",
                &script,
                "sh",
            ])
            .arg(hotcell.binary());
        let answer = Running::start(&mut command).finish();
        let (out, err) = (answer.out(), answer.err());
        let lines: Vec<&str> = out.lines().filter(|line| !line.is_empty()).collect();
        assert!(
            err.contains("No space left on device"),
            "{}: {out} {err}",
            hotcell.name
        );
        assert!(err.contains("hint: Make room in "), "{err}");
        assert_eq!(lines.len(), 4, "{out} {err}");
        assert_eq!((lines[0], lines[3]), ("125", "1"), "{out} {err}");
    }
}

#[test]
fn over_mcp_an_install_reports_what_it_does_and_takes_lists_maps_and_locks() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    registry.add("tinything", "2.0", OLD, &tiny("2.0"));
    let own = command(&hotcell, &registry, installer());
    let mut client = crate::raw::Stdio::open_as(&[], |command, _| {
        let variables = own
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        command.envs(variables);
    });
    let arguments =
        serde_json::json!({ "code": PROGRAM, "language": "python", "packages": ["tinything<2"] });
    let params = serde_json::json!({ "name": "run", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let first = client.request("tools/call", params)["result"].clone();
    assert_eq!(first["structuredContent"]["stdout"], "1.0\n", "{first}");
    let reported = client.lines.iter().any(|line| {
        let line = String::from_utf8_lossy(line);
        line.contains("notifications/progress") && line.contains("fetching tinything-1.0")
    });
    assert!(reported, "no progress");
    let mut run = |packages: Value| {
        let arguments =
            serde_json::json!({ "code": PROGRAM, "language": "python", "packages": packages });
        client.call("run", arguments)["structuredContent"]["stdout"].clone()
    };
    assert_eq!(
        run(serde_json::json!({ "tinything": "tinything>1" })),
        "2.0\n"
    );
    assert_eq!(
        run(first["structuredContent"]["packages"]["lock"].clone()),
        "1.0\n"
    );
    assert_eq!(run(serde_json::json!([])), "");
}

#[test]
fn an_import_that_cannot_be_had_never_stops_a_program_with_others_that_can() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let fresh = wheel("freshthing", "1.0", &[("freshthing.py", "")], &[]);
    registry.add("freshthing", "1.0", &registry::today(), &fresh);
    // What a program writes itself is nobody's package.
    let own = "import tinything\nopen('sib.py', 'w').write('NAME = 7')\nimport sib\nprint(tinything.VERSION, sib.NAME)";
    let mut fetched = None;
    for arguments in [
        &["-c", own][..],
        &["-c", own],
        &["--package", "tinything", "-c", own],
        &["--offline", "--package", "tinything", "-c", own],
    ] {
        let output = json(&hotcell, &registry, arguments);
        assert_eq!(output["stdout"], "1.0 7\n", "{output}");
        let installed = &output["packages"]["installed"];
        assert_eq!(installed, &serde_json::json!(["tinything==1.0"]));
        let count = registry.count("tinything-1.0-py3-none-any.whl");
        assert_eq!(count, *fetched.get_or_insert(count), "it was fetched again");
    }
    // What is nowhere says at its import why.
    for (module, why) in [
        (
            "nowhere_at_all",
            "the registry has no package `nowhere-at-all`",
        ),
        ("freshthing", "days old"),
    ] {
        let code = format!("import tinything; print('ran')\nimport {module}");
        let output = json(&hotcell, &registry, &["-c", &code]);
        let error = &output["error"];
        assert_eq!(
            (&error["kind"], &error["module"], &output["stdout"]),
            (&"missing_module".into(), &module.into(), &"ran\n".into()),
            "{output}"
        );
        let hint = error["hint"].as_str().expect("a hint");
        assert!(hint.contains(why), "{output}");
    }
    // Nothing can be installed where nobody answers; what needs nothing runs.
    let mut lost = command(&hotcell, &registry, installer());
    lost.env("HOTCELL_PYPI_INDEX", "http://127.0.0.1:9/simple");
    let code =
        "open('sib.py', 'w').write('NAME = 7')\nimport sib\nprint(sib.NAME)\nimport nowhere_at_all";
    let lost = Running::start(lost.args(["run", "--json", "-l", "python", "-c", code]));
    let lost = lost.finish().json();
    assert_eq!(lost["stdout"], "7\n", "{lost}");
    let hint = lost["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("the registry could not be asked"), "{lost}");
}

#[test]
fn an_import_that_is_nobodys_or_brand_new_is_not_installed_unless_it_is_named() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    let today = registry::today();
    registry.add(
        "freshthing",
        "1.0",
        &today,
        &wheel("freshthing", "1.0", &[("freshthing.py", "")], &[]),
    );
    registry.add(
        "reqeusts",
        "1.0",
        OLD,
        &wheel("reqeusts", "1.0", &[("reqeusts.py", "")], &[]),
    );
    for (module, why) in [
        ("freshthing", "days old"),
        ("reqeusts", "almost the name of `requests`"),
        ("nosuchmod_xyz", "no package `nosuchmod-xyz`"),
    ] {
        let output = json(
            &hotcell,
            &registry,
            &["-c", &format!("print('ran')\nimport {module}")],
        );
        let error = &output["error"];
        assert_eq!(
            (&error["kind"], &error["module"], &output["stdout"]),
            (&"missing_module".into(), &module.into(), &"ran\n".into()),
            "{output}"
        );
        assert!(
            error["hint"].as_str().is_some_and(|it| it.contains(why)),
            "{output}"
        );
    }
    // At the command line too, with its own means.
    let said = run(&hotcell, &registry, &["-c", "import reqeusts"]).err();
    assert!(
        said.contains("hint: Name its package with `--package`, perhaps requests: "),
        "{said}"
    );
    for module in ["freshthing", "reqeusts"] {
        let named = json(
            &hotcell,
            &registry,
            &["--package", module, "-c", &format!("import {module}")],
        );
        assert_eq!(named["status"], "ok", "{named}");
    }
}

#[test]
fn the_installed_sets_are_listed_removed_and_pruned() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let packages = |arguments: &[&str]| {
        let mut command = command(&hotcell, &registry, installer());
        Running::start(command.arg("packages").args(arguments)).finish()
    };
    assert_eq!(packages(&["add", "tinything"]).out(), "tinything==1.0\n");
    let listed = packages(&["list", "--json"]).json();
    assert_eq!(
        (&listed[0]["language"], &listed[0]["installed"][0]),
        (&"python".into(), &"tinything==1.0".into())
    );
    assert!(packages(&["list"]).out().contains("tinything==1.0"));
    // What was installed beforehand is what a program gets, offline too.
    assert_eq!(
        run(&hotcell, &registry, &["--offline", "-c", PROGRAM]).out(),
        "1.0\n"
    );
    assert_eq!(packages(&["prune"]).out(), "nothing to remove\n");
    // What a program may be using stays, and that is said.
    assert_eq!(
        packages(&["prune", "--size", "1"]).out(),
        "nothing to remove\n0.0 MB stay: used in the last quarter of an hour\n"
    );
    assert_eq!(packages(&["prune", "--size", "much"]).code, Some(2));
    assert_eq!(
        packages(&["prune", "--all"]).out(),
        "removed tinything==1.0 (0.0 MB)\n"
    );
    assert_eq!(packages(&["list", "--json"]).json(), serde_json::json!([]));
    assert_eq!(
        run(&hotcell, &registry, &["--offline", "-c", PROGRAM]).code,
        Some(1)
    );
    let bad = packages(&[
        "add",
        "-l",
        "python",
        "--",
        "--index-url=http://127.0.0.1:9",
    ]);
    assert_eq!(bad.code, Some(2), "{}", bad.err());
}

#[test]
fn an_install_shows_a_bar_on_a_terminal_and_nowhere_else() {
    let Some(hotcell) =
        anyone().filter(|_| has("python3") && has("script") && installer().is_some())
    else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let mut command = command(&hotcell, &registry, installer());
    let program = hotcell.write("tiny.py", PROGRAM);
    open_to_all(&program);
    // `script` gives it a terminal.
    let line = format!("{} run {}", hotcell.binary().display(), program.display());
    let mut terminal = Command::new("script");
    hotcell.dress(&mut terminal);
    terminal.args(["-qec", &line, "/dev/null"]);
    for (name, value) in command.get_envs() {
        terminal.env(name, value.unwrap_or_default());
    }
    let said = Running::start(&mut terminal).finish().out();
    assert!(
        said.contains("[==============================] 100 %"),
        "{said:?}"
    );
    assert!(said.contains("\x1b[K1.0\r\n"), "{said:?}");

    std::fs::remove_dir_all(hotcell.home().join(".cache")).expect("what was installed");
    let said = Running::start(command.arg("run").arg(&program)).finish();
    assert_eq!(said.out(), "1.0\n");
    assert!(!said.err().contains(['[', '\r']), "{:?}", said.err());
}

/// What the set adds is a path for an interpreter that is there already; `scripts/bench second` has the time.
#[test]
fn the_second_run_of_a_set_needs_no_registry_no_installer_and_no_new_interpreter() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let tools = hotcell.make_folder("tools/bin");
    let uv = tools.join("uv");
    std::fs::copy(installer().expect("asked for").join("bin/uv"), &uv).expect("a copy");
    let mut server = command(&hotcell, &registry, tools.parent());
    server.arg("serve");
    let mut client = Client::of(server);
    client.begin();
    let code = "import tinything\n\
        print(tinything.VERSION, 'zygote' in open('/proc/self/maps').read())";
    let mut run = || {
        let call =
            serde_json::json!({ "code": code, "language": "python", "packages": ["tinything"] });
        crate::raw::record(&client.run(call))
    };
    let first = run();
    assert_eq!(first["packages"]["cached"], false, "{first}");
    let asked = registry.asked();
    assert!(asked > 0);

    std::fs::remove_file(uv).expect("it was there");
    let mut again = Value::Null;
    // The next one may come before an interpreter has been started for it.
    let prestarted = eventually(PATIENCE, || {
        again = run();
        assert_eq!(again["packages"]["cached"], true, "{again}");
        again["stdout"] == "1.0 True\n"
    });
    assert!(prestarted, "{again}");
    assert_eq!(registry.asked(), asked, "the registry was asked");
}

#[test]
fn a_block_a_list_and_a_file_beside_the_program_name_packages_too() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    registry.add("tinything", "2.0", OLD, &tiny("2.0"));
    let block = format!("# /// script\n# dependencies = ['tinything<2']\n# ///\n{PROGRAM}");
    assert_eq!(run(&hotcell, &registry, &["-c", &block]).out(), "1.0\n");
    let list = hotcell.write("requirements.txt", "tinything==1.0  # the old one\n");
    assert_eq!(
        run(
            &hotcell,
            &registry,
            &["--file", list.to_str().unwrap(), "-c", PROGRAM]
        )
        .out(),
        "1.0\n"
    );
    assert_eq!(run(&hotcell, &registry, &["-c", PROGRAM]).out(), "2.0\n");
    assert_eq!(
        run(&hotcell, &registry, &["--no-packages", "-c", PROGRAM]).code,
        Some(1)
    );
}

#[test]
fn a_program_that_runs_an_installer_is_told_what_to_do_instead() {
    let Some(hotcell) = crate::support::anyone() else {
        return;
    };
    let python = "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'tinything'])";
    for (language, code, hint) in [
        (
            "python",
            python,
            "Name `tinything` with `--package` instead of running `pip`: what a program needs is installed before it starts.",
        ),
        (
            "bash",
            "pip install -q tinything rich || exit 3",
            "Name `tinything`, `rich` with `--package` instead of running `pip`: what a program needs is installed before it starts.",
        ),
        (
            "bash",
            "npm install tinything || exit 3; exit 4",
            "Name `tinything` with `--packages '{\"npm\": [...]}'` instead of running `npm`: what a program needs is installed before it starts.",
        ),
    ] {
        let result = hotcell.json(&["-l", language, "-c", code]);
        assert_eq!(result["error"]["hint"], hint, "{result}");
    }
    // Control: a failure that has nothing to do with it.
    let result = hotcell.json(&["-l", "python", "-c", "raise ValueError('pip')"]);
    assert_eq!(result["error"]["hint"], Value::Null, "{result}");
}

#[test]
fn each_file_that_is_fetched_is_told_of_once() {
    let Some(hotcell) = crate::support::anyone().filter(|_| installer().is_some()) else {
        return;
    };
    let registry = registry::Registry::start();
    let file = registry::wheel("tinything", "1.0", &[("tinything.py", "x = 1\n")], &[]);
    registry.add("tinything", "1.0", "2020-01-01T00:00:00Z", &file);
    let answer = run(
        &hotcell,
        &registry,
        &["-c", "import tinything; print(tinything.x)"],
    );
    assert_eq!(answer.out(), "1\n", "{}", answer.err());
    assert_eq!(
        answer.err().matches("fetching tinything-1.0").count(),
        1,
        "{}",
        answer.err()
    );
}

#[test]
fn a_set_keeps_the_version_that_the_systems_own_packages_were_built_for() {
    let Some(hotcell) = crate::support::anyone().filter(|_| installer().is_some()) else {
        return;
    };
    let look = "import numpy, pandas; print(numpy.__version__, numpy.__file__)";
    let asked = hotcell
        .command()
        .args(["run", "--no-packages", "-l", "python", "-c", look])
        .output();
    let asked = asked.expect("it starts").stdout;
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let Some((own, _)) = asked
        .split_once(' ')
        .filter(|it| it.1.contains("packages/numpy"))
    else {
        return crate::support::skip("python3 has no pandas of the system");
    };
    let registry = registry::Registry::start();
    for version in [own, "99.0"] {
        let text = format!("__version__ = '{version}'\n");
        let file = registry::wheel("numpy", version, &[("numpy/__init__.py", &text)], &[]);
        registry.add("numpy", version, "2020-01-01T00:00:00Z", &file);
    }
    let file = registry::wheel(
        "tinyneeds",
        "1.0",
        &[(
            "tinyneeds.py",
            "import numpy\nversion = numpy.__version__\n",
        )],
        &["numpy"],
    );
    registry.add("tinyneeds", "1.0", "2020-01-01T00:00:00Z", &file);
    let code = "import tinyneeds; print(tinyneeds.version)";
    let kept = json(&hotcell, &registry, &["--package", "tinyneeds", "-c", code]);
    assert_eq!(kept["stdout"], format!("{own}\n"), "{kept}");
    // Whoever asks for another gets it.
    let asked = json(
        &hotcell,
        &registry,
        &[
            "--package",
            "tinyneeds",
            "--package",
            "numpy>90",
            "-c",
            code,
        ],
    );
    assert_eq!(asked["stdout"], "99.0\n", "{asked}");
}

#[test]
fn an_import_of_hotcell_asks_no_registry() {
    let Some(hotcell) = anyone() else { return };
    let registry = Registry::start();
    let stranger = wheel(
        "hotcell",
        "1.0",
        &[("hotcell.py", "raise SystemExit(9)")],
        &[],
    );
    registry.add("hotcell", "1.0", OLD, &stranger);
    let call = |language: &str, code: &str| {
        let mut command = command(&hotcell, &registry, installer());
        command.args(["run", "--json", "-l", language, "-c", code]);
        Running::start(&mut command).finish().json()
    };
    for (language, runtime, code) in [
        ("python", "python3", "import hotcell; print(hotcell.args)"),
        ("js", "node", "console.log(require('hotcell').args)"),
        (
            "ts",
            "node",
            "import { args } from 'hotcell'; console.log(args)",
        ),
    ] {
        if has(runtime) {
            let result = call(language, code);
            assert_eq!(
                (&result["stdout"], result.get("packages")),
                (&"[]\n".into(), None),
                "{result}"
            );
        }
    }
    assert_eq!(registry.asked(), 0);
}
