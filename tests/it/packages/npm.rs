//! npm's packages where neither npm nor node is: the engine in the binary, and an installer that
//! hotcell brings itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::registry::{Registry, tarball};
use super::{bring, command};
use crate::mcp::client::Client;
use crate::support::{Hotcell, PATIENCE, Running, anyone, eventually, everyone, has};

/// A folder whose `bin` has nothing but the installer, fetched once by our own recipe.
pub fn installer() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let arguments = ["-l", "js", "--package", "bringer", "-c", "0"];
    let bring = || bring("bun-packages", "/nowhere", &arguments);
    FOLDER.get_or_init(bring).as_deref()
}

/// `hotcell` with this registry, and no program of the host in its `PATH`.
fn alone(hotcell: &Hotcell, registry: &Registry) -> Command {
    let mut command = command(hotcell, registry, None);
    let folder = installer().expect("it is there").join("bin");
    command.env("PATH", folder);
    command
}

fn json(mut command: Command, arguments: &[&str]) -> Value {
    command.args(["run", "--json"]).args(arguments);
    Running::start(&mut command).finish().json()
}

/// Two packages: one is a module and needs an old version of the other, a script.
fn filled() -> Registry {
    let registry = Registry::start();
    let package = |about: &Value, code: &str| {
        let files = [
            ("package/package.json", about.to_string()),
            ("package/index.js", code.to_owned()),
        ];
        tarball(&files)
    };
    for version in ["1.0.0", "2.0.0"] {
        let about = json!({ "name": "oldthing", "version": version });
        let code = format!("exports.version = '{version}'; exports.folder = __dirname;");
        registry.publish("oldthing", version, json!({}), &package(&about, &code));
    }
    let needs = json!({ "oldthing": "^1" });
    let about = json!({ "name": "@scope/newthing", "version": "1.0.0", "type": "module", "exports": "./index.js", "dependencies": needs });
    let code = "import { version } from 'oldthing'; export const needs = version; export default (x) => x * 2;";
    registry.publish(
        "@scope/newthing",
        "1.0.0",
        json!({ "dependencies": needs }),
        &package(&about, code),
    );
    registry
}

const PROGRAM: &str = "import twice, { needs } from '@scope/newthing'; import { version } from 'npm:oldthing@2'; console.log(twice(4), needs, version)";

#[test]
fn where_no_node_is_packages_are_installed_once_and_then_nobody_is_asked() {
    if installer().is_none() {
        return;
    }
    for hotcell in everyone() {
        let registry = filled();
        for language in ["js", "ts"] {
            let call = ["-l", language, "-c", PROGRAM];
            let first = json(alone(&hotcell, &registry), &call);
            assert_eq!(
                first["stdout"], "8 1.0.0 2.0.0\n",
                "{} {language}: {first}",
                hotcell.name
            );
            assert_eq!(first["runtime"]["path"], "embedded");
            let all = [
                "@scope/newthing==1.0.0",
                "oldthing==1.0.0",
                "oldthing==2.0.0",
            ];
            assert_eq!(first["packages"]["installed"], json!(all));
            let asked = registry.asked();
            let again = json(alone(&hotcell, &registry), &call);
            assert_eq!(
                (&again["stdout"], &again["packages"]["cached"]),
                (&first["stdout"], &true.into()),
                "{again}"
            );
            assert_eq!(registry.asked(), asked, "a second run asked the registry");
        }
    }
}

#[test]
fn a_node_that_waited_finds_the_packages_of_its_program_and_no_others() {
    let installer = installer().filter(|_| has("node"));
    let Some(installer) = installer else { return };
    for hotcell in everyone() {
        let registry = filled();
        let mut server = command(&hotcell, &registry, Some(installer));
        server.arg("serve");
        let mut client = Client::of(server);
        client.begin();
        let module = "import twice, { needs } from '@scope/newthing';\nimport { version, folder } from 'oldthing';\n";
        let look = "console.log(twice(4), needs, version, folder.startsWith('/opt/packages/'), (await import('node:fs')).readdirSync('/workspace').join())";
        let module = format!("{module}{look}");
        let common = "console.log(require('oldthing').version)";
        for (language, code, said) in [
            ("javascript@node", &*module, "8 1.0.0 2.0.0 true"),
            ("typescript@node", &*module, "8 1.0.0 2.0.0 true"),
            ("javascript@node", common, "2.0.0"),
            ("typescript@node", common, "2.0.0"),
        ] {
            let mut run = |packages: Value| {
                client.run(json!({ "language": language, "code": code, "packages": packages }))
            };
            let first = run(json!(["@scope/newthing", "oldthing@2"]));
            let stdout = &first["structuredContent"]["stdout"];
            let text = stdout.as_str().unwrap_or_default();
            assert!(
                text.starts_with(said),
                "{language} {}: {first}",
                hotcell.name
            );
            let mut again = Value::Null;
            let came = eventually(PATIENCE, || {
                again = run(json!(["@scope/newthing", "oldthing@2"]));
                again["_meta"]["dev.hotcell/run"]["runtime"]["start"] == "warm"
            });
            assert!(came, "{language} {}: {again}", hotcell.name);
            assert_eq!(again["structuredContent"]["stdout"], *stdout, "{language}");
            // Control: without them, such a node finds none.
            let without = run(json!([]));
            assert_eq!(without["isError"], true, "{language}: {without}");
        }
    }
}

#[test]
fn a_lock_is_the_same_for_every_installer() {
    let Some(hotcell) = anyone().filter(|_| installer().is_some()) else {
        return;
    };
    let registry = filled();
    let lock = |record: &Value| {
        record["packages"]["lock"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let first = json(alone(&hotcell, &registry), &["-l", "js", "-c", PROGRAM]);
    let mut locks = vec![lock(&first)];
    if has("npm") {
        let mut with_npm = command(&hotcell, &registry, None);
        with_npm.env("HOTCELL_PACKAGES_DIR", hotcell.make_folder("home/other"));
        let other = json(with_npm, &["-l", "js@embedded", "-c", PROGRAM]);
        assert_eq!(other["stdout"], first["stdout"], "{other}");
        locks.push(lock(&other));
    }
    let about = json!({ "name": "oldthing", "version": "2.1.0" });
    let newer = tarball(&[
        ("package/package.json", about.to_string()),
        ("package/index.js", "exports.version = 'newer'".to_owned()),
    ]);
    registry.publish("oldthing", "2.1.0", json!({}), &newer);
    for (at, text) in locks.iter().enumerate() {
        let file = hotcell.write("lock.json", text);
        let call = [
            "-l",
            "js@embedded",
            "--lock",
            file.to_str().expect("a path"),
            "-c",
            PROGRAM,
        ];
        for (name, command) in [
            ("bun", alone(&hotcell, &registry)),
            ("npm", command(&hotcell, &registry, None)),
        ] {
            if name == "npm" && !has("npm") {
                continue;
            }
            let mut command = command;
            command.env(
                "HOTCELL_PACKAGES_DIR",
                hotcell.make_folder(format!("home/{name}{at}")),
            );
            let pinned = json(command, &call);
            assert_eq!(
                (&pinned["stdout"], &pinned["packages"]["lock"]),
                (&first["stdout"], &text.as_str().into()),
                "lock {at} with {name}: {pinned}"
            );
        }
    }
    // Control: without a lock the newer one comes.
    let newer = json(
        alone(&hotcell, &registry),
        &[
            "-l",
            "js",
            "--package",
            "oldthing@2.1.0",
            "-c",
            "console.log(require('oldthing').version)",
        ],
    );
    assert_eq!(newer["stdout"], "newer\n", "{newer}");

    // Somebody who changes the file on the way is noticed.
    let evil = tarball(&[(
        "package/package.json",
        r#"{ "name": "oldthing", "version": "2.0.0" }"#.to_owned(),
    )]);
    registry.server.with(|state| {
        state
            .files
            .insert("/npm/oldthing/-/oldthing-2.0.0.tgz".to_owned(), evil)
    });
    let file = hotcell.write("lock.json", &locks[0]);
    let mut changed = alone(&hotcell, &registry);
    changed.env("HOTCELL_PACKAGES_DIR", hotcell.make_folder("home/changed"));
    let changed = json(
        changed,
        &[
            "-l",
            "js",
            "--lock",
            file.to_str().expect("a path"),
            "-c",
            PROGRAM,
        ],
    );
    assert_eq!(changed["error"]["kind"], "package_not_found", "{changed}");
    assert!(
        changed["error"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("Integrity")),
        "{changed}"
    );
}

#[test]
fn for_node_the_prefix_of_a_package_is_taken_away() {
    let Some(hotcell) = anyone().filter(|_| has("node") && installer().is_some()) else {
        return;
    };
    let registry = filled();
    for language in ["js", "ts"] {
        let with_node = command(&hotcell, &registry, installer());
        let record = json(with_node, &["-l", language, "-c", PROGRAM]);
        let found = (&record["stdout"], &record["runtime"]["name"]);
        assert_eq!(
            found,
            (&"8 1.0.0 2.0.0\n".into(), &"node".into()),
            "{record}"
        );
    }
}

#[test]
fn what_cannot_be_had_is_said_in_the_installers_words_and_no_script_runs() {
    let Some(hotcell) = anyone().filter(|_| installer().is_some()) else {
        return;
    };
    let registry = filled();
    for (package, words) in [
        ("nowhere-to-be-found", "404"),
        ("oldthing@7", "No version matching \"7\""),
    ] {
        let failed = json(
            alone(&hotcell, &registry),
            &["-l", "js", "--package", package, "-c", "console.log('ran')"],
        );
        let error = &failed["error"];
        assert_eq!(
            (&error["kind"], &failed["stdout"]),
            (&"package_not_found".into(), &"".into()),
            "{failed}"
        );
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|it| it.contains(words)),
            "{failed}"
        );
    }
    let scripts = json!({ "postinstall": "echo ran > ran.txt" });
    let about = json!({ "name": "scripted", "version": "1.0.0", "scripts": scripts });
    let code = "module.exports = require('fs').existsSync(__dirname + '/ran.txt')";
    let bytes = tarball(&[
        ("package/package.json", about.to_string()),
        ("package/index.js", code.to_owned()),
    ]);
    registry.publish(
        "scripted",
        "1.0.0",
        json!({ "hasInstallScript": true, "scripts": scripts }),
        &bytes,
    );
    let quiet = json(
        alone(&hotcell, &registry),
        &["-l", "js", "-c", "console.log(require('scripted'))"],
    );
    assert_eq!(quiet["stdout"], "false\n", "{quiet}");
}

/// Makes a package of its own at run time, of the name of one that is installed.
const OWN: &str = "fs.mkdirSync('node_modules/oldthing', { recursive: true });
fs.writeFileSync('node_modules/oldthing/index.js', 'exports.version = \"own\"');
";

#[test]
fn what_a_program_puts_into_node_modules_itself_wins_and_what_is_installed_is_found_beside_it() {
    let required = format!(
        "const fs = require('fs');\n{OWN}console.log(require('oldthing').version, require('flatthing').version)"
    );
    // Of a package's own packages none is the program's.
    let imported = format!(
        "import fs from 'node:fs';\n{OWN}const [own, other, flat] = await Promise.all(['oldthing', '@scope/newthing', 'flatthing'].map((it) => import(it)));\n\
         console.log(own.default.version, other.needs, flat.default.version);\n\
         // import 'oldthing'; import '@scope/newthing'; import 'flatthing'"
    );
    let named = ["oldthing@1", "@scope/newthing", "flatthing"];
    let named: Vec<&str> = named.iter().flat_map(|it| ["--package", it]).collect();
    for hotcell in everyone() {
        let registry = filled();
        let about = json!({ "name": "flatthing", "version": "3.0.0" });
        let flat = tarball(&[
            ("package/package.json", about.to_string()),
            ("package/index.js", "exports.version = '3.0.0'".to_owned()),
        ]);
        registry.publish("flatthing", "3.0.0", json!({}), &flat);
        let check = |make: &dyn Fn() -> Command, language: &str| {
            for (code, expected) in [(&required, "own 3.0.0\n"), (&imported, "own 1.0.0 3.0.0\n")] {
                let flags = ["-l", language, "-c", code.as_str()];
                let record = json(make(), &[&named[..], &flags].concat());
                assert_eq!(record["stdout"], expected, "{language}: {record}");
            }
        };
        if has("npm") && has("node") {
            check(&|| command(&hotcell, &registry, None), "js@node");
        }
        if installer().is_some() {
            check(&|| alone(&hotcell, &registry), "js@embedded");
        }
    }
}

#[test]
fn the_versions_of_a_package_json_among_the_files_are_heeded() {
    let Some(hotcell) = anyone().filter(|_| has("node") && installer().is_some()) else {
        return;
    };
    let registry = filled();
    let code = "console.log(require('oldthing').version)";
    let run = |list: &str, code: &str| {
        let list = hotcell.write("home/package.json", list);
        let file = format!("{}:package.json", list.display());
        let with_node = command(&hotcell, &registry, installer());
        json(with_node, &["-l", "js", "--file", &file, "-c", code])
    };
    // Control: without it the newest is taken.
    let newest = json(
        command(&hotcell, &registry, installer()),
        &["-l", "js", "--package", "oldthing", "-c", code],
    );
    assert_eq!(newest["stdout"], "2.0.0\n", "{newest}");
    let listed = run(
        r#"{"dependencies": {"oldthing": "^1.0.0", "unused": "1"}}"#,
        code,
    );
    assert_eq!(listed["stdout"], "1.0.0\n", "{listed}");
    // A version in the import itself is closer; what cannot be had there is said.
    let closer = "import { version } from 'npm:oldthing@2'; console.log(version)";
    let closer = run(r#"{"dependencies": {"oldthing": "^1.0.0"}}"#, closer);
    assert_eq!(closer["stdout"], "2.0.0\n", "{closer}");
    let elsewhere = run(r#"{"dependencies": {"oldthing": "file:../x"}}"#, code);
    assert_eq!(elsewhere["error"]["kind"], "invalid_request", "{elsewhere}");
}
