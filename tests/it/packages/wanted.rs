//! Which versions a program gets, and where it may name them.

use serde_json::Value;

use super::registry::{Registry, wheel};
use super::{OLD, PROGRAM, command, installer, json, run, tiny};
use crate::mcp::client::Client;
use crate::support::{PATIENCE, Running, anyone, eventually, has};

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
    let registry = Registry::start();
    for version in [own, "99.0"] {
        let text = format!("__version__ = '{version}'\n");
        let file = wheel("numpy", version, &[("numpy/__init__.py", &text)], &[]);
        registry.add("numpy", version, "2020-01-01T00:00:00Z", &file);
    }
    let file = wheel(
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
        again["runtime"]["start"] == "warm" && again["stdout"] == "1.0 True\n"
    });
    assert!(prestarted, "{again}");
    assert_eq!(registry.asked(), asked, "the registry was asked");
}
