//! The real registries: what the built-in recipes pin is there, is what they say, and runs in a cell.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::mcp::client::Client;
use crate::support::{
    Answer, Hotcell, PATH, PATIENCE, Running, eventually, everyone, has, ordinary,
};

fn told(hotcell: &Hotcell, path: &str, arguments: &[&str]) -> Answer {
    Running::start(&mut command(hotcell, path, arguments)).finish()
}

fn command(hotcell: &Hotcell, path: &str, arguments: &[&str]) -> Command {
    let mut command = hotcell.command();
    // The mirrors and proxies of this machine, if it has any.
    let mirrors = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        name.ends_with("_proxy")
            || name.contains("index_url")
            || name == "npm_config_registry"
            || name.starts_with("ssl_cert_")
    });
    command.envs(mirrors).env("PATH", path).args(arguments);
    command
}

/// What `languages add` said on the way.
fn add_and_run(
    hotcell: &Hotcell,
    path: &str,
    language: &str,
    code: &str,
    expected: &str,
) -> String {
    // `lua@lua5.4`: not by the engine that is built in.
    let run = ["run", "-l", language, "-c", code];
    let language = language.split('@').next().unwrap_or_default();
    // Control: this path has nothing for it.
    let before = told(hotcell, path, &run);
    assert_eq!(before.code, Some(2), "{language}: {}", before.out());
    let hint = format!("`hotcell languages add {language}");
    assert!(before.err().contains(&hint), "{}", before.err());

    // As long as it takes: the line may be slow, and hotcell gives up by itself when nothing comes.
    let added = command(hotcell, path, &["languages", "add", "--prefer", language]).output();
    let added = added.expect("it can be started");
    let said = String::from_utf8_lossy(&added.stderr).into_owned();
    assert_eq!(added.status.code(), Some(0), "{language}: {said}");
    let ran = told(hotcell, path, &run);
    assert_eq!(
        ran.whole(),
        (Some(0), expected.to_owned(), String::new()),
        "{language}"
    );
    said
}

#[test]
fn a_package_of_npm_is_added_and_runs_on_the_machines_own_node() {
    if !has("node") {
        return;
    }
    // Only what it runs on: this machine may have the rest too.
    for hotcell in everyone() {
        let path = hotcell.make_folder("home/path");
        let node = path.join("node");
        std::os::unix::fs::symlink("/usr/bin/node", &node).unwrap();
        let path = path.to_str().unwrap();
        let code = "console.log \"#{n * n}\" for n in [1..3]";
        add_and_run(&hotcell, path, "coffeescript", code, "1\n4\n9\n");
    }
}

#[test]
fn packages_of_debian_are_unpacked_without_root_and_run() {
    for hotcell in everyone() {
        let lua = "for n = 1, 3 do print(n * n) end";
        add_and_run(&hotcell, "/nowhere", "lua@lua5.4", lua, "1\n4\n9\n");
        // Its script library is in the tree, and is found only by the recipe's environment.
        let tcl = "package require msgcat; puts [string toupper [info library]]";
        add_and_run(
            &hotcell,
            "/nowhere",
            "tcl",
            tcl,
            "/OPT/TCL/SHARE/TCLTK/TCL8.6\n",
        );
    }
}

#[test]
fn a_real_python_is_added_from_uvs_builds_or_else_from_debian_and_it_says_which() {
    let Some(hotcell) = ordinary() else { return };
    let python =
        "import json, sqlite3, ssl, sys; print(json.dumps([sys.prefix, sys.version_info[0]]))";
    let expected = "[\"/opt/python\", 3]\n";
    let said = add_and_run(&hotcell, "/nowhere", "python", python, expected);
    let first = "fetching python 3.14.10 from uv's builds of CPython";
    assert!(said.contains(first), "{said}");
    // Not everybody can reach those builds; then it is told, and Debian's is taken.
    let instead = said.contains("trying `python-debian` instead");
    assert_eq!(
        said.contains("fetching python-debian 3.11.2 from Debian"),
        instead
    );
}

#[test]
fn deno_is_added_by_an_ordinary_user_where_there_is_nothing() {
    let Some(hotcell) = ordinary() else { return };
    let code =
        "enum A { B = 41 }\nconst add = (n: number): number => n + 1;\nconsole.log(add(A.B));";
    add_and_run(&hotcell, "/nowhere", "typescript@deno", code, "42\n");
    // JSX and namespaces, where nothing names the file.
    let code = "namespace N { export const x = 1 }\nconst React = { createElement: (tag: string, _: unknown, ...inside: string[]) => `${tag} ${inside}` };\n\
        class P { constructor(readonly a: number) {} }\nconsole.log(<b>{String(N.x + new P(1).a)}</b>);";
    let ran = told(
        &hotcell,
        "/nowhere",
        &["run", "-l", "typescript@deno", "-c", code],
    );
    assert_eq!(ran.out(), "b 2\n", "{}", ran.err());
    let removed = told(&hotcell, "/nowhere", &["languages", "remove", "typescript"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err());
}

#[test]
fn gvisor_is_added_and_programs_run_in_it() {
    // An ordinary user needs a newer one than Debian's: that maps no ids in there.
    for hotcell in everyone().into_iter().filter(|it| it.uid == 0) {
        let run = ["run", "--isolation", "gvisor", "-l", "lua", "-c"];
        let run = [&run[..], &["print(6 * 7)"]].concat();
        // Control: this path has none.
        let before = told(&hotcell, "/nowhere", &run);
        assert_ne!(before.code, Some(0), "{}", before.out());
        let hint = "`hotcell languages add gvisor`";
        assert!(before.err().contains(hint), "{}", before.err());
        let added = command(&hotcell, "/nowhere", &["languages", "add", "gvisor"]).output();
        let added = added.expect("it can be started");
        let said = String::from_utf8_lossy(&added.stderr).into_owned();
        assert_eq!(added.status.code(), Some(0), "{said}");
        let ran = told(&hotcell, "/nowhere", &run);
        assert_eq!(ran.out(), "42\n", "{}", ran.err());
        let runsc = hotcell.place("home/.local/share/hotcell/runtimes/bin/runsc");
        let is_gone = || running(&runsc).is_empty();
        assert!(eventually(PATIENCE, is_gone), "{:?}", running(&runsc));
        // A server that has no time to say goodbye, with one that waits.
        let serve = command(&hotcell, PATH, &["serve", "--isolation", "gvisor"]);
        let mut client = Client::of(serve);
        client.begin();
        client.run(json!({ "code": "print(1)", "language": "python" }));
        let control = eventually(PATIENCE, || !running(&runsc).is_empty());
        client.child.kill().expect("SIGKILL");
        assert!(control, "the control: it is found");
        assert!(eventually(PATIENCE, is_gone), "{:?}", running(&runsc));
    }
}

/// The processes that were started by this name.
fn running(program: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let words = entries.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
    let name = program.to_str().unwrap();
    words.filter(|words| words.starts_with(name)).collect()
}
