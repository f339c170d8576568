//! Go's modules: by what a program imports and by name, built without a network.

use std::process::Command;

use serde_json::{Value, json};

use super::registry::Registry;
use crate::support::{Hotcell, PATH, Running, anyone, everyone, ordinary, skip};

/// Where Go puts itself when nobody packages it.
const GO: &str = "/usr/local/go/bin";

fn has_go() -> bool {
    let mut folders = PATH.split(':').chain([GO]);
    let found = folders.any(|it| std::path::Path::new(it).join("go").exists());
    if !found {
        skip("no `go` on this host");
    }
    found
}

fn command(hotcell: &Hotcell, registry: &Registry) -> Command {
    let mut command = super::command(hotcell, registry, None);
    command.env("PATH", format!("{PATH}:{GO}"));
    command
}

/// Filling the cache of a tool chain takes longer than a test may, so nobody looks at the clock.
fn run(hotcell: &Hotcell, registry: &Registry, arguments: &[&str]) -> Value {
    let mut command = command(hotcell, registry);
    let output = command
        .args(["run", "--json", "-l", "go"])
        .args(arguments)
        .output();
    let output = output.expect("it can be started");
    serde_json::from_slice(&output.stdout).expect("a result")
}

fn tiny(version: &str) -> String {
    format!("package tiny\n\nconst Version = \"{version}\"\n")
}

fn registry() -> Registry {
    let registry = Registry::start();
    for version in ["v1.0.0", "v1.1.0"] {
        registry.add_module("tiny.example/tiny", version, &tiny(version), "");
    }
    let code =
        "package wide\n\nimport \"tiny.example/tiny\"\n\nconst Of = \"wide of \" + tiny.Version\n";
    let requires = "\nrequire tiny.example/tiny v1.0.0\n";
    registry.add_module("wide.example/wide", "v1.0.0", code, requires);
    registry
}

const PROGRAM: &str = "package main\n\nimport (\n\t\"fmt\"\n\t\"tiny.example/tiny\"\n)\n\nfunc main() { fmt.Println(tiny.Version) }\n";

#[test]
fn what_a_go_program_imports_is_had_once_and_then_nobody_is_asked() {
    if !has_go() {
        return;
    }
    for hotcell in everyone() {
        let registry = registry();
        // What is Go's own asks nobody.
        let plain = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n";
        let plain = run(&hotcell, &registry, &["-c", plain]);
        assert_eq!(
            (&plain["stdout"], plain.get("packages"), registry.asked()),
            (&"1\n".into(), None, 0),
            "{}: {plain}",
            hotcell.name
        );

        let first = run(&hotcell, &registry, &["-c", PROGRAM]);
        assert_eq!(first["stdout"], "v1.1.0\n", "{}: {first}", hotcell.name);
        assert_eq!(
            first["packages"]["installed"],
            json!(["tiny.example/tiny==v1.1.0"])
        );
        let asked = registry.asked();
        for offline in [&[][..], &["--offline"]] {
            let again = run(&hotcell, &registry, &[offline, &["-c", PROGRAM]].concat());
            assert_eq!(
                (
                    &again["stdout"],
                    &again["packages"]["cached"],
                    &again["compile"]["cached"]
                ),
                (&first["stdout"], &true.into(), &true.into()),
                "{again}"
            );
        }
        // Our own module is there beside them.
        let both = PROGRAM
            .replace("\"fmt\"", "\"fmt\"\n\t\"hotcell\"")
            .replace("Println(", "Println(hotcell.Args, ");
        let both = run(&hotcell, &registry, &["-c", &both, "x"]);
        assert_eq!(both["stdout"], "[x] v1.1.0\n", "{both}");
        // Another program with the same packages is built, and asks nobody either.
        let other = run(
            &hotcell,
            &registry,
            &["-c", &PROGRAM.replace("Println(", "Println(2, ")],
        );
        assert_eq!(
            (&other["stdout"], &other["compile"]["cached"]),
            (&"2 v1.1.0\n".into(), &false.into()),
            "{other}"
        );
        assert_eq!(registry.asked(), asked, "a later run asked the registry");
    }
}

#[test]
fn a_version_a_go_mod_a_file_beside_and_a_lock_are_heeded() {
    let Some(hotcell) = anyone().filter(|_| has_go()) else {
        return;
    };
    let registry = registry();
    let run =
        |arguments: &[&str]| run(&hotcell, &registry, &[arguments, &["-c", PROGRAM]].concat());
    let named = run(&["--package", "tiny.example/tiny@v1.0.0"]);
    assert_eq!(named["stdout"], "v1.0.0\n", "{named}");

    // Its own module is not looked for anywhere, and what it requires is had.
    let own = hotcell.write(
        "go.mod",
        "module own.example/app\n\ngo 1.17\n\nrequire tiny.example/tiny v1.0.0\n",
    );
    let listed = run(&["--file", own.to_str().expect("a path")]);
    assert_eq!(listed["stdout"], "v1.0.0\n", "{listed}");

    let beside = hotcell.write(
        "beside.go",
        "package main\n\nimport \"wide.example/wide\"\n\nfunc init() { println(wide.Of) }\n",
    );
    let both = run(&["--file", beside.to_str().expect("a path")]);
    assert_eq!(
        (&both["stdout"], &both["stderr"]),
        (&"v1.1.0\n".into(), &"wide of v1.1.0\n".into()),
        "{both}"
    );

    let lock = named["packages"]["lock"].as_str().expect("a lock");
    let remove = || {
        let mut command = command(&hotcell, &registry);
        Running::start(command.args(["packages", "remove", "tiny.example/tiny"])).finish()
    };
    remove();
    let file = hotcell.write("lock", lock);
    let pinned = run(&["--lock", file.to_str().expect("a path")]);
    assert_eq!(
        (&pinned["stdout"], &pinned["packages"]["lock"]),
        (&"v1.0.0\n".into(), &lock.into()),
        "{pinned}"
    );
    // Somebody who changes a module on the way is noticed, and a line that is none too.
    remove();
    let evil = Registry::start();
    evil.add_module("tiny.example/tiny", "v1.0.0", &tiny("evil"), "");
    let mut changed = command(&hotcell, &evil);
    changed.args(["run", "--json", "-l", "go", "-c", PROGRAM, "--lock"]);
    let changed = Running::start(changed.arg(&file)).finish().json();
    assert_eq!(changed["error"]["kind"], "package_not_found", "{changed}");
    let said = changed["error"]["message"].as_str().expect("a message");
    assert!(said.contains("checksum mismatch"), "{said}");
    let bad = hotcell.write("bad", format!("{lock}tiny.example/tiny => ../x h1:x\n"));
    let bad = run(&["--lock", bad.to_str().expect("a path")]);
    assert_eq!(bad["error"]["kind"], "invalid_request", "{bad}");
}

#[test]
fn a_module_that_cannot_be_had_is_named_and_nothing_runs() {
    let Some(hotcell) = anyone().filter(|_| has_go()) else {
        return;
    };
    let registry = registry();
    let missing = PROGRAM.replace(
        "\"tiny.example/tiny\"",
        "\"tiny.example/tiny\"\n\t_ \"none.example/none\"",
    );
    let missing = run(&hotcell, &registry, &["-c", &missing]);
    assert_eq!(
        (&missing["error"]["kind"], &missing["error"]["module"]),
        (&"package_not_found".into(), &"none.example/none".into()),
        "{missing}"
    );
    let offline = run(&hotcell, &registry, &["--offline", "-c", PROGRAM]);
    assert_eq!(offline["error"]["kind"], "package_not_found", "{offline}");
    for bad in [
        "tiny",
        "../x",
        "tiny.example/tiny@../x",
        "-x.y/z",
        "a.b/c?d",
    ] {
        let bad = format!("--package={bad}");
        let refused = run(&hotcell, &registry, &[&bad, "-c", PROGRAM]);
        assert_eq!(
            refused["error"]["kind"], "invalid_request",
            "{bad}: {refused}"
        );
    }
    let mut lost = command(&hotcell, &registry);
    lost.env("HOTCELL_GO_PROXY", "http://127.0.0.1:9/go");
    let lost = lost.args(["run", "--json", "-l", "go", "-c", PROGRAM]);
    let lost = Running::start(lost).finish().json();
    assert_eq!(lost["error"]["kind"], "package_install", "{lost}");
}

#[test]
fn a_module_of_the_real_proxy_is_imported() {
    let Some(hotcell) = ordinary().filter(|_| has_go()) else {
        return;
    };
    let code = "package main\n\nimport (\n\t\"fmt\"\n\t\"github.com/BurntSushi/toml\"\n\t\"golang.org/x/text/language\"\n)\n\nfunc main() {\n\tvar v struct{ A string }\n\ttoml.Decode(\"a = 'b'\", &v)\n\tfmt.Println(v.A, language.German)\n}\n";
    let mut command = hotcell.command();
    let output = command
        .env("PATH", format!("{PATH}:{GO}"))
        .args(["run", "-l", "go", "-c", code])
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "b de\n", "{said}");
}

/// Arguments, a value on a line, values by name, a tool: as `docs/running.md` has them.
const WITH_MODULE: &str = r#"package main

import (
	"fmt"
	"hotcell"
)

func main() {
	hotcell.Display(hotcell.Args, 2)
	fmt.Println(hotcell.Set("kept", []string{"x"}))
	var kept []string
	fmt.Println(hotcell.Get("kept", &kept), kept, hotcell.Get("../x", &kept))
	_, err := hotcell.Call("nobody.tool", map[string]any{})
	fmt.Println(err)
}
"#;

#[test]
fn an_import_of_hotcell_is_ours_in_go() {
    if !has_go() {
        return;
    }
    for hotcell in everyone() {
        let registry = registry();
        let result = run(&hotcell, &registry, &["-c", WITH_MODULE, "a"]);
        let expected = "[a]\n2\n<nil>\n<nil> [x] not a name for a value: \"../x\"\n\
                        this run was given no servers: see `hotcell servers`\n";
        assert_eq!(result["stdout"], expected, "{}: {result}", hotcell.name);
        assert_eq!((result.get("packages"), registry.asked()), (None, 0));
        // Control: without ours there is no such package.
        let other = WITH_MODULE.replace("hotcell", "hotcel");
        let other = run(&hotcell, &registry, &["-c", &other]);
        assert_eq!(other["error"]["kind"], "missing_module", "{other}");
    }
}
