//! What cannot be had, or is not asked for: nothing is installed by mistake, and the program is told why.

use std::process::Command;

use serde_json::Value;

use super::registry::{self, Registry, wheel};
use super::{OLD, command, installer, json, run, tiny};
use crate::support::{PATH, Running, anyone, everyone, has};

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
    // One that goes on without what it wanted is told so too.
    let code = "pip install tinything 2> .pip; echo 'ERROR: No matching distribution found for tinything' >&2; echo on";
    let result = hotcell.json(&["-l", "bash", "-c", code]);
    let told = "Name `tinything` with `--package` instead of running `pip`: what a program needs is installed before it starts.";
    assert_eq!(
        (&result["stdout"], &result["notes"][0]),
        (&"on\n".into(), &told.into()),
        "{result}"
    );
    // Control: the same where it says nothing of the kind, and a failure that has nothing to do with it.
    let result = hotcell.json(&["-l", "bash", "-c", "pip install tinything 2> .pip; echo on"]);
    assert_eq!(result["notes"], Value::Null, "{result}");
    let result = hotcell.json(&["-l", "python", "-c", "raise ValueError('pip')"]);
    assert_eq!(result["error"]["hint"], Value::Null, "{result}");
}
