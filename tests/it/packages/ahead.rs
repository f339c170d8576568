//! Sandboxes that wait with a program's packages loaded.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::registry::{Registry, tarball, wheel};
use super::{OLD, command, installer};
use crate::mcp::client::Client;
use crate::raw::record;
use crate::same::answer::{Answer, difference};
use crate::same::ours::of_output;
use crate::same::program::Program;
use crate::support::{Hotcell, PATIENCE, eventually, everyone, has};

/// A module that knows whether its program was there when it was loaded, and does at its import what packages do.
const TIDY: &str = "
import os, random, tempfile, threading, time
ahead = not os.path.exists('/workspace/main.py')
links = []
for name in os.listdir('/proc/self/fd'):
    try: links.append(os.readlink('/proc/self/fd/' + name).split(':')[0])
    except OSError: pass
os.environ['TIDY'] = 'set'
os.mkdir('/tmp/tidy'); os.chdir('/tmp/tidy')
random.seed(7)
file = tempfile.TemporaryFile(); file.write(b'kept')
event = threading.Event()
thread = threading.Thread(target=event.wait, daemon=True); thread.start()
seen = []
";
/// What can be seen of all that.
const LOOK: &str = "\
import tidy
import os, random, threading
tidy.seen.append(1); tidy.file.seek(0)
print(os.environ['TIDY'], os.getcwd(), random.random(), tidy.file.read(), threading.active_count(), tidy.seen, __name__, __file__)
print(tidy.ahead, 'socket' in tidy.links, sorted(os.listdir('/workspace')), os.listdir('/workspace/.home'))
";
/// What a package may do at its import and a program meet. Where no program is yet it leaves a file, which nobody but its result shows.
const EFFECTS: &str = "
import os, random, tempfile, threading
if not os.path.exists('/workspace/main.py'):
    open('/workspace/.ahead', 'w').close()
os.environ['EFFECTS'] = 'set'
os.makedirs('/tmp/effects', exist_ok=True); os.chdir('/tmp/effects')
random.seed(7)
file = tempfile.TemporaryFile()
thread = threading.Thread(target=threading.Event().wait, daemon=True); thread.start()
";

fn registry() -> Registry {
    let registry = Registry::start();
    let add = |name: &str, code: &str| {
        let files = [(&*format!("{name}/__init__.py"), code)];
        registry.add(name, "1.0", OLD, &wheel(name, "1.0", &files, &[]));
    };
    add("tidy", TIDY);
    add("effects", EFFECTS);
    add(
        "loud",
        "print('loud is here')\nimport os\nahead = not os.path.exists('/workspace/main.py')\n",
    );
    add(
        "broken",
        "import os\nif not os.path.exists('/workspace/main.py'): raise SystemExit(9)\nahead = False\n",
    );
    registry
}

fn serve(hotcell: &Hotcell, registry: &Registry) -> Option<Client> {
    serve_with(hotcell, registry, &[])
}

fn serve_with(hotcell: &Hotcell, registry: &Registry, options: &[&str]) -> Option<Client> {
    let mut server = command(hotcell, registry, Some(installer()?));
    server.arg("serve").args(options);
    let mut client = Client::of(server);
    client.begin();
    Some(client)
}

fn run(client: &mut Client, code: &str) -> Value {
    run_in(client, "python", code)
}

fn run_in(client: &mut Client, language: &str, code: &str) -> Value {
    let output = client.run(json!({ "code": code, "language": language }));
    assert!(output.get("structuredContent").is_some(), "{output}");
    output
}

fn stdout(output: &Value) -> String {
    output["structuredContent"]["stdout"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Runs it until it found what it imports loaded; all that it said before and then.
fn until_ahead(client: &mut Client, code: &str) -> Option<Vec<String>> {
    until_ahead_in(client, "python", code)
}

fn until_ahead_in(client: &mut Client, language: &str, code: &str) -> Option<Vec<String>> {
    let mut said = Vec::new();
    let found = eventually(PATIENCE, || {
        thread::sleep(Duration::from_millis(100));
        said.push(stdout(&run_in(client, language, code)));
        said.last().is_some_and(|it| it.contains("\nTrue "))
    });
    found.then_some(said)
}

#[test]
fn a_program_finds_its_packages_loaded_and_sees_nothing_of_it() {
    let registry = registry();
    for hotcell in everyone() {
        let Some(mut client) = serve(&hotcell, &registry) else {
            return;
        };
        let said = until_ahead(&mut client, LOOK)
            .unwrap_or_else(|| panic!("none waits as {}", hotcell.name));
        let [first, last] = [&said[0], &said[said.len() - 1]];
        assert!(
            first.contains("\nFalse False ['.home', 'main.py'] []"),
            "control: {first}"
        );
        // All but where it was loaded: no socket of ours was open, and nothing of the waiting is left.
        assert_eq!(*last, first.replace("\nFalse ", "\nTrue "));
        assert!(last.starts_with("set /tmp/tidy 0.3238"), "{last}");
        // Its runtime was waiting, which the result says.
        let output = run(&mut client, LOOK);
        assert_eq!(
            output["_meta"]["dev.hotcell/run"]["runtime"]["start"], "warm",
            "{output}"
        );
        // Nothing of it is another's: each has one run, and one that does something first loads it itself.
        let code = format!("import os; os.environ['BEFORE'] = '1'\n{LOOK}");
        for _ in 0..3 {
            let output = run(&mut client, &code);
            assert!(stdout(&output).contains("\nFalse False"), "{output}");
        }
        // One that imports it and more finds it loaded.
        let more = LOOK.replace("import os,", "import json, os,");
        assert!(until_ahead(&mut client, &more).is_some());
    }
}

#[test]
fn a_package_that_prints_or_fails_where_no_program_is_waits_for_none() {
    let registry = registry();
    for hotcell in everyone() {
        let Some(mut client) = serve(&hotcell, &registry) else {
            return;
        };
        for (name, said) in [("loud", "loud is here\nFalse\n"), ("broken", "False\n")] {
            for _ in 0..4 {
                let output = run(&mut client, &format!("import {name}\nprint({name}.ahead)"));
                assert_eq!(stdout(&output), said, "{output}");
                thread::sleep(Duration::from_millis(300));
            }
        }
    }
}

/// The same of npm, and what a program sees of it.
const TIDY_JS: &str = "
const fs = require('fs');
exports.ahead = !fs.existsSync('/workspace/main.js');
exports.links = fs.readdirSync('/proc/self/fd').flatMap((fd) => { try { return [fs.readlinkSync('/proc/self/fd/' + fd).split(':')[0]]; } catch { return []; } });
process.env.TIDY = 'set';
fs.mkdirSync('/tmp/tidy'); process.chdir('/tmp/tidy');
exports.seen = [];
exports.events = new (require('events'))();
setTimeout(() => console.log('later'), 1);
";
const LOOK_JS: &str = "\
'use strict';
const tidy = require('tidy');
const { readdirSync } = require('node:fs');
tidy.seen.push(1);
tidy.events.on('x', () => console.log('heard')).emit('x');
console.log(process.env.TIDY, process.cwd(), tidy.seen, require.main === module, __filename, module.children.length, require('tidy') === tidy, typeof calls, typeof node, typeof require.resolve);
console.log(tidy.ahead ? 'True' : 'False', tidy.links.includes('socket'), readdirSync('/workspace').sort(), readdirSync('/workspace/.home/.hotcell'));
";

#[test]
fn a_script_of_node_finds_its_packages_loaded_and_sees_nothing_of_it() {
    if !has("node") || !has("npm") {
        return;
    }
    let registry = registry();
    let about = json!({ "name": "tidy", "version": "1.0.0" }).to_string();
    let files = [
        ("package/package.json", about),
        ("package/index.js", TIDY_JS.to_owned()),
    ];
    registry.publish("tidy", "1.0.0", json!({}), &tarball(&files));
    for hotcell in everyone() {
        let Some(mut client) = serve(&hotcell, &registry) else {
            return;
        };
        let said = until_ahead_in(&mut client, "javascript@node", LOOK_JS)
            .unwrap_or_else(|| panic!("none waits as {}", hotcell.name));
        let [first, last] = [&said[0], &said[said.len() - 1]];
        let seen = "\nFalse false [ '.home', 'main.js' ] [ 'node_modules' ]\nlater\n";
        assert!(first.ends_with(seen), "control: {first}");
        assert_eq!(*last, first.replace("\nFalse ", "\nTrue "));
        assert!(last.starts_with("heard\nset /tmp/tidy [ 1 ] true /workspace/main.js 1 true undefined undefined function\n"), "{last}");
        // One that does something first loads it itself.
        let code = format!("process.env.BEFORE = '1';\n{LOOK_JS}");
        for _ in 0..3 {
            let output = run_in(&mut client, "javascript@node", &code);
            assert!(stdout(&output).contains("\nFalse "), "{output}");
        }
    }
}

/// Those of `tests/same` that can begin with an import of a package.
fn programs() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/same/python");
    let all = Program::read_all(&folder, &["py"]).into_iter();
    // What must be the first of a file stays so: a name of an encoding, the imports of `__future__`.
    let is_bound = |code: &str| {
        let marks = ["\u{feff}", "#!", "# -*-", "# coding", "\u{c}"];
        marks.iter().any(|it| code.starts_with(it)) || code.contains("__future__")
    };
    let is_plain = |it: &Program| it.args.is_empty() && it.files.is_empty() && it.needs.is_none();
    all.filter(|it| is_plain(it) && !is_bound(&it.code))
        .map(|it| Program {
            code: format!("import effects\n0\n{}", it.code),
            ..it
        })
        .collect()
}

/// What it said, and whether it found its package loaded.
fn answer(client: &mut Client, program: &Program) -> (Answer, bool) {
    let mut asked = json!({ "code": program.code, "language": "python" });
    if let Some(stdin) = &program.stdin {
        asked["stdin"] = stdin.as_str().into();
    }
    let output = record(&client.run(asked));
    let mut files = output["files"].as_array().into_iter().flatten();
    let was_ahead = files.any(|file| file["name"] == ".ahead");
    (of_output(&output), was_ahead)
}

#[test]
fn no_program_can_tell_that_its_package_was_loaded_before_it_came() {
    let registry = registry();
    let Some(hotcell) = everyone().into_iter().next() else {
        return;
    };
    let (Some(mut new), Some(mut waiting)) = (
        serve_with(&hotcell, &registry, &["--pool", "0"]),
        serve(&hotcell, &registry),
    ) else {
        return;
    };
    // A third of them, as with other kinds of sandboxes that take their time.
    let programs: Vec<Program> = programs().into_iter().step_by(3).collect();
    assert!(programs.len() >= 100, "only {} programs", programs.len());
    let (mut told, mut ahead) = (String::new(), 0);
    for program in &programs {
        let (expected, was_ahead) = answer(&mut new, program);
        assert!(!was_ahead, "control: {}", program.name);
        // One that looks closely at its runtime never finds it loaded.
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(100));
            let (found, was_ahead) = answer(&mut waiting, program);
            if let Some(how) = difference(&expected, &found) {
                told += &format!("{} (ahead: {was_ahead}):\n{how}", program.name);
            }
            if was_ahead {
                ahead += 1;
                break;
            }
        }
    }
    assert!(told.is_empty(), "{told}");
    assert!(
        ahead * 10 > programs.len() * 7,
        "{ahead} of {} found it loaded",
        programs.len()
    );
}

#[test]
fn the_owner_names_packages_that_sandboxes_wait_with() {
    let registry = registry();
    for hotcell in everyone() {
        let config = "home/.config/hotcell/config.toml";
        hotcell.write(config, "[warm]\npackages = [\"tidy\"]\n");
        let Some(mut client) = serve(&hotcell, &registry) else {
            return;
        };
        // The first run of all may come too early, but no later one is needed to have it made.
        let code = "import tidy\nprint()\nprint(tidy.ahead, 0)";
        assert!(until_ahead(&mut client, code).is_some());
        drop(client);
        hotcell.write(config, "[warm]\npackages = [\"no name\"]\n");
        let answer = hotcell.run(&["-l", "python", "-c", "1"]);
        let told = answer.err();
        assert!(
            told.contains("config.toml:") && told.contains("the name of a module"),
            "{told}"
        );
    }
}
