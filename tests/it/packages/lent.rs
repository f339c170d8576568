//! Packages that a program names of another language's registry, for their commands.

use serde_json::{Value, json};

use super::registry::{Registry, tarball, wheel};
use super::{OLD, command, installer};
use crate::mcp::client::Client;
use crate::support::{Hotcell, Running, everyone, has};

/// A package with a command in each of two registries, and a second one on PyPI.
fn filled() -> Registry {
    let registry = Registry::start();
    for name in ["tinytool", "othertool"] {
        let code = format!("import sys\ndef main():\n    print('{name}', *sys.argv[1:])\n");
        let entry = format!("[console_scripts]\n{name} = {name}:main\n");
        let files = [
            (format!("{name}.py"), code),
            (format!("{name}-1.0.dist-info/entry_points.txt"), entry),
        ];
        let files = files
            .each_ref()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        registry.add(name, "1.0", OLD, &wheel(name, "1.0", &files, &[]));
    }
    let bin = json!({ "node-tool": "cli.js" });
    let about = json!({ "name": "@tiny/node-tool", "version": "1.0.0", "bin": bin });
    let files = [
        ("package/package.json", about.to_string()),
        ("package/index.js", "exports.name = 'node-tool'".to_owned()),
        (
            "package/cli.js",
            "#!/usr/bin/env node\nconsole.log(require('./index.js').name, ...process.argv.slice(2))\n".to_owned(),
        ),
    ];
    registry.publish(
        "@tiny/node-tool",
        "1.0.0",
        json!({ "bin": bin }),
        &tarball(&files),
    );
    registry
}

fn call(hotcell: &Hotcell, registry: &Registry, words: &[&str]) -> Value {
    let mut command = command(hotcell, registry, installer());
    command.args(["run", "--json"]).args(words);
    Running::start(&mut command).finish().json()
}

fn serve(hotcell: &Hotcell, registry: &Registry) -> Client {
    let mut server = command(hotcell, registry, installer());
    server.arg("serve");
    let mut client = Client::of(server);
    client.begin();
    client
}

#[test]
fn a_program_of_another_language_names_packages_and_finds_their_commands() {
    for hotcell in everyone() {
        if installer().is_none() {
            return;
        }
        let registry = filled();
        let call = |words: &[&str]| call(&hotcell, &registry, words);
        let code = "tinytool a b && python3 -c 'import tinytool; print(tinytool.__name__)'";
        let with = call(&["-l", "bash", "--package", "tinytool", "-c", code]);
        assert_eq!(with["stdout"], "tinytool a b\ntinytool\n", "{with}");
        // A compiled program starts them too.
        if has("gcc") {
            let code = "#include <stdlib.h>\nint main(void) { return system(\"tinytool c\"); }";
            let with = call(&["-l", "c", "--package", "tinytool", "-c", code]);
            assert_eq!(with["stdout"], "tinytool c\n", "{with}");
        }
        // Control: whoever names nothing has nothing, and asks nobody.
        let asked = registry.asked();
        let without = call(&["-l", "bash", "-c", "tinytool a"]);
        assert_eq!(without["exit_code"], 127, "{without}");
        assert_eq!(registry.asked(), asked);
    }
}

#[test]
fn any_program_names_packages_of_several_registries_by_their_names() {
    if installer().is_none() || !has("npm") {
        return;
    }
    for hotcell in everyone() {
        let registry = filled();
        let both = r#"{"npm": ["@tiny/node-tool"], "pypi": ["tinytool"]}"#;
        let code =
            "tinytool a; node-tool 'b c'; node -e 'console.log(require(\"@tiny/node-tool\").name)'";
        let bash = ["-l", "bash", "-c", code];
        let told = "tinytool a\nnode-tool b c\nnode-tool\n";
        let named = call(&hotcell, &registry, &[&["-p", both][..], &bash].concat());
        assert_eq!(named["stdout"], told, "{named}");
        let installed = json!(["tinytool==1.0", "@tiny/node-tool==1.0.0"]);
        assert_eq!(named["packages"]["installed"], installed, "{named}");

        // One lock has both, and brings both back without a question about versions.
        let lock = named["packages"]["lock"].as_str().expect("a lock");
        let file = hotcell.write("lock.json", lock);
        let with = ["--lock", file.to_str().expect("a path"), "--offline"];
        let pinned = call(&hotcell, &registry, &[&with[..], &bash].concat());
        assert_eq!(
            (&pinned["stdout"], &pinned["packages"]["lock"]),
            (&told.into(), &lock.into()),
            "{pinned}"
        );

        // A language with packages of its own gets those of others beside them.
        let own = "import subprocess, tinytool\nprint(tinytool.__name__, flush=True)\nsubprocess.run(['node-tool', 'x'])";
        let own = call(
            &hotcell,
            &registry,
            &[
                "-l",
                "python",
                "-p",
                r#"{"npm": ["@tiny/node-tool"]}"#,
                "-c",
                own,
            ],
        );
        assert_eq!(own["stdout"], "tinytool\nnode-tool x\n", "{own}");
        let own = "require('child_process').execSync('tinytool y', { stdio: 'inherit' })";
        let own = call(
            &hotcell,
            &registry,
            &["-l", "js", "-p", r#"{"pypi": ["tinytool"]}"#, "-c", own],
        );
        assert_eq!(own["stdout"], "tinytool y\n", "{own}");

        // What lends no commands is refused, and nothing runs.
        let refused = call(
            &hotcell,
            &registry,
            &[
                "-l",
                "bash",
                "-p",
                r#"{"crates": ["rand"]}"#,
                "-c",
                "echo ran",
            ],
        );
        assert_eq!(
            (&refused["error"]["kind"], &refused["stdout"]),
            (&"invalid_request".into(), &"".into()),
            "{refused}"
        );

        // Over MCP, where a map from imports to packages still is one.
        let mut client = serve(&hotcell, &registry);
        let mut run = |language: &str, code: &str, packages: Value| {
            let arguments = json!({ "code": code, "language": language, "packages": packages });
            client.run(arguments)["structuredContent"].clone()
        };
        let both = serde_json::from_str(both).expect("JSON");
        assert_eq!(run("bash", code, both)["stdout"], told);
        let map = json!({ "npm": "tinytool" });
        let code = "import tinytool; print(tinytool.__name__)";
        assert_eq!(run("python", code, map)["stdout"], "tinytool\n");
    }
}

#[test]
fn a_session_finds_the_commands_of_packages_and_later_calls_add_some() {
    if installer().is_none() || !has("npm") {
        return;
    }
    for hotcell in everyone() {
        let registry = filled();
        let mut client = serve(&hotcell, &registry);
        let mut run = |session: &str, code: &str, packages: Value| {
            let mut arguments = json!({ "code": code, "language": "bash", "session": session });
            if !packages.is_null() {
                arguments["packages"] = packages;
            }
            client.run(arguments)["structuredContent"].clone()
        };
        let both = json!({ "npm": ["@tiny/node-tool"], "pypi": ["tinytool"] });
        let first = run("a", "x=5; tinytool 1; node-tool 1", both);
        assert_eq!(first["stdout"], "tinytool 1\nnode-tool 1\n", "{first}");
        let kept = run("a", "tinytool $x; node-tool $x", Value::Null);
        assert_eq!(kept["stdout"], "tinytool 5\nnode-tool 5\n", "{kept}");
        let more = run("a", "othertool $x; tinytool $x", json!(["othertool"]));
        assert_eq!(more["stdout"], "othertool 5\ntinytool 5\n", "{more}");
        let imported = run(
            "a",
            "python3 -c 'import othertool, tinytool; print(1)'",
            Value::Null,
        );
        assert_eq!(imported["stdout"], "1\n", "{imported}");

        // One that was begun without any cannot be shown some, and says so before anything runs.
        let plain = run("b", "tinytool 2 || echo none", Value::Null);
        assert_eq!(plain["stdout"], "none\n", "{plain}");
        let late = run("b", "echo ran; tinytool 2", json!(["tinytool"]));
        let hint = "Name all packages in the first call of a session, or begin another.";
        assert_eq!(
            (
                &late["error"]["hint"],
                late["stdout"].as_str().unwrap_or("")
            ),
            (&hint.into(), ""),
            "{late}"
        );
    }
}
