//! Compiled languages: built in a cell with limits of their own, told where a source is wrong,
//! built together with other files, and built once.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::raw::Stdio;
use crate::support::left::{children, name};
use crate::support::{PATIENCE, Running, anyone, eventually, everyone, has, has_heavy};

const HELLO: &str = "#include <stdio.h>\nint main(void) { puts(\"hi\"); return 0; }\n";

fn c(code: &str) -> Value {
    json!({ "language": "c", "code": code })
}

#[test]
fn the_same_source_is_built_once_and_another_one_anew() {
    if !has("gcc") {
        return;
    }
    for hotcell in everyone() {
        let cached = |code: &str, file: Option<&str>| {
            let mut arguments = vec!["-l", "c", "-c", code];
            arguments.extend(file.into_iter().flat_map(|file| ["--file", file]));
            let record = hotcell.json(&arguments);
            assert_eq!(record["stdout"], "hi\n", "{record}");
            record["compile"]["cached"].as_bool().expect("a fact")
        };
        assert!(!cached(HELLO, None));
        assert!(cached(HELLO, None));
        assert!(!cached(&format!("{HELLO}\n// other"), None));
        // A file beside it may be a part of it.
        let beside = hotcell.write("home/beside.h", "int x;\n");
        let beside = beside.to_str().expect("text");
        assert!(!cached(HELLO, Some(beside)));
        assert!(cached(HELLO, Some(beside)));
        fs::write(beside, "int y;\n").expect("it is ours");
        assert!(!cached(HELLO, Some(beside)));
    }
}

#[test]
fn a_kept_program_that_is_not_what_was_kept_is_built_again() {
    let Some(hotcell) = anyone().filter(|_| has("gcc")) else {
        return;
    };
    let run = || {
        let record = hotcell.json(&["-l", "c", "-c", HELLO]);
        assert_eq!(record["stdout"], "hi\n", "{record}");
        record["compile"]["cached"].as_bool().expect("a fact")
    };
    run();
    // Control: untouched, it is used.
    assert!(run());
    let builds = hotcell.place("home/.cache/hotcell/builds");
    let entry = || {
        let mut all = fs::read_dir(&builds).expect("the cache").flatten();
        let entry = all.find(|it| it.path().is_dir()).expect("an entry");
        entry.path().join("files")
    };
    let program = || {
        let mut files = fs::read_dir(entry()).expect("an entry").flatten();
        files.next().expect("a program").path()
    };
    let evil = "#!/bin/sh\necho evil\n";
    type Change<'a> = &'a dyn Fn();
    let changes: [Change<'_>; 3] = [
        &|| fs::write(program(), evil).expect("ours"),
        &|| fs::write(program(), "").expect("ours"),
        &|| fs::remove_dir_all(entry()).expect("ours"),
    ];
    for (at, change) in changes.iter().enumerate() {
        change();
        assert!(!run(), "change {at}: what was changed was run");
        assert!(run(), "change {at}: what was built again is not kept");
    }
    fs::write(program(), evil).expect("ours");
    let look = || {
        let mut command = hotcell.command();
        let answer = Running::start(command.args(["doctor", "--store", "--json"])).finish();
        let all = answer.json();
        let builds = all.as_array().expect("a list").iter();
        let builds = builds
            .clone()
            .find(|it| it["name"] == "builds")
            .expect("builds");
        (
            answer.code,
            builds["damaged"].as_array().expect("a list").len(),
        )
    };
    assert_eq!(look(), (Some(1), 1));
    assert_eq!(look(), (Some(0), 0));
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let Some(hotcell) = anyone().filter(|_| has("gcc")) else {
        return;
    };
    let run = || hotcell.json(&["-l", "c", "-c", HELLO]);
    run();
    assert_eq!(run()["compile"]["cached"], true);
    let builds = hotcell.place("home/.cache/hotcell/builds");
    fs::set_permissions(&builds, fs::Permissions::from_mode(0o777)).expect("its mode");
    let record = run();
    assert_eq!(record["compile"]["cached"], false);
    assert_eq!(record["stdout"], "hi\n");
}

#[test]
fn a_source_that_is_wrong_is_told_with_its_places_and_nothing_runs() {
    if !has("gcc") {
        return;
    }
    let mut client = Stdio::open(&[]);
    let code = "int main(void) {\n  return nope;\n}\nint f(void) { return also; }\n";
    let record = client.run(c(code));
    let error = &record["error"];
    assert_eq!(record["status"], "failed");
    assert_eq!(record["stdout"], "");
    assert_eq!(
        (&error["kind"], &error["file"]),
        (&json!("syntax"), &json!("main.c"))
    );
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(10)));
    let all = error["diagnostics"].as_array().expect("a list");
    assert_eq!(all.len(), 2, "{error}");
    assert_eq!(all[1]["line"], 4);
    assert!(all[1]["message"].as_str().expect("text").contains("also"));
    assert!(record["stderr"].as_str().expect("text").contains("nope"));
}

#[test]
fn several_files_are_built_together() {
    if !has("gcc") || !has("g++") {
        return;
    }
    let mut client = Stdio::open(&[]);
    let record = client.run(json!({
        "language": "c",
        "code": "#include <stdio.h>\n#include \"lib/twice.h\"\nint main(void) { printf(\"%d\\n\", twice(21)); }\n",
        "files": {
            "lib/twice.h": "int twice(int);\n",
            "lib/twice.c": "#include \"twice.h\"\nint twice(int x) { return 2 * x; }\n",
            "data.txt": "not a source",
        },
    }));
    assert_eq!(record["stdout"], "42\n", "{record}");
    let record = client.run(json!({
        "language": "cpp",
        "code": "#include <iostream>\n#include \"a.hpp\"\nint main() { std::cout << a() << '\\n'; }\n",
        "files": { "a.hpp": "int a();\n", "a.cc": "int a() { return nope; }\n" },
    }));
    assert_eq!(record["error"]["file"], "a.cc", "{record}");
    assert_eq!(record["error"]["line"], 1);
}

#[test]
fn a_compiler_has_limits_of_its_own_and_no_more_than_a_cell() {
    if !has("gcc") {
        return;
    }
    let mut client = Stdio::open(&[]);
    // Control: a file that is there can be made a part of the program.
    let read = |path: &str| {
        format!("__asm__(\".incbin \\\"{path}\\\"\");\nint main(void) {{ return 0; }}\n")
    };
    assert_eq!(client.run(c(&read("/etc/hosts")))["status"], "ok");
    let host = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let record = client.run(c(&read(&host)));
    assert_eq!(record["error"]["kind"], "syntax", "{record}");
    // A program's short time is not its compiler's.
    let mut quick = c(HELLO);
    quick["timeout"] = json!(0.5);
    assert_eq!(client.run(quick)["stdout"], "hi\n");
    // More than a compiler may use: which limit it meets first is its own affair.
    let bomb = "#define A x,x,x,x,x,x,x,x\n#define B A,A,A,A,A,A,A,A\n#define C B,B,B,B,B,B,B,B\n\
        #define D C,C,C,C,C,C,C,C\n#define E D,D,D,D,D,D,D,D\n#define F E,E,E,E,E,E,E,E\n#define G F,F,F,F,F,F,F,F\n\
        #define H G,G,G,G,G,G,G,G\nint x; int *y[] = { H };\n";
    let record = client.run(c(bomb));
    let kind = record["error"]["kind"].as_str().expect("a kind");
    assert!(["memory", "timeout", "output"].contains(&kind), "{record}");
    assert_eq!(client.run(c(HELLO))["stdout"], "hi\n");
}

/// The compiler writes down when it was at work; `scripts/bench second` has the time that a second run takes.
#[test]
fn the_second_run_of_a_program_starts_no_compiler() {
    let Some(hotcell) = anyone().filter(|_| has("gcc")) else {
        return;
    };
    let code = "#include <stdio.h>\nint main(void) { puts(__DATE__ \" \" __TIME__); return 0; }\n";
    let built = |code: &str| hotcell.run(&["-l", "c", "-c", code]).out();
    let first = built(code);
    let second = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a clock")
            .as_secs()
    };
    let then = second();
    assert!(eventually(PATIENCE, || second() > then));
    assert_eq!(built(code), first);
    // Control: what is built now says another time.
    assert_ne!(built(&format!("{code}// other\n")), first);
}

#[test]
fn every_result_has_the_version_of_its_runtime() {
    let mut client = Stdio::open(&[]);
    let record = client
        .run(json!({ "language": "python", "code": "import sys; print(sys.version.split()[0])" }));
    let said = record["stdout"].as_str().expect("text").trim();
    assert_eq!(record["runtime"]["version"], said, "{record}");
    for hotcell in everyone() {
        let record = hotcell.json(&["-l", "sh", "-c", "echo ${BASH_VERSION%%[-(]*}"]);
        let said = record["stdout"].as_str().expect("text").trim();
        assert_eq!(record["runtime"]["version"], said, "{record}");
    }
}

#[test]
fn a_language_of_another_system_is_refused_as_such() {
    let mut client = Stdio::open(&[]);
    for (id, system, needs) in [
        ("applescript", "macOS", "osascript"),
        ("bat", "Windows", "cmd"),
        ("vbscript", "Windows", "cscript"),
        ("ahk", "Windows", "AutoHotkey"),
        ("autoit", "Windows", "AutoIt3"),
    ] {
        let record = client.run(json!({ "language": id, "code": "1" }));
        let error = &record["error"];
        assert_eq!(record["status"], "rejected");
        assert_eq!(error["kind"], "unsupported_platform");
        assert_eq!(error["requires"], needs);
        let machine = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
        let words = format!(
            "Language '{id}' runs only on {system} (needs {needs}). This server runs on {machine}. Nothing was executed."
        );
        assert_eq!(error["message"], words);
    }
    // Packaged nowhere, or not here: a missing runtime, with what was searched and where to get it.
    let record = client.run(json!({ "language": "kit", "code": "1" }));
    let error = &record["error"];
    assert_eq!(error["path"], std::env::var("PATH").unwrap_or_default());
    assert_eq!(error["kind"], "missing_runtime");
    assert_eq!(error["searched"], json!(["kitc"]));
    assert_eq!(error["hint"], "Kit is unmaintained and packaged nowhere.");
}

/// The tool chain's cache is filled before the first program is built, and the next step has to see that nobody waits any more.
#[test]
fn a_run_that_is_cancelled_while_its_tool_chain_is_prepared_is_cancelled() {
    if !Path::new("/usr/local/go/bin/go").exists() && !has_heavy("go") {
        return;
    }
    let Some(hotcell) = anyone() else { return };
    let code = "package main\nfunc main() { println(1) }";
    let mut command = hotcell.command();
    command.env("PATH", format!("{}:/usr/local/go/bin", hotcell.path()));
    let mut running = Running::start(command.args(["run", "-l", "go", "-c", code]));
    let mut is_preparing = || {
        assert!(!running.has_ended(), "it did not wait for its tool chain");
        let inits = children(running.pid()).into_iter();
        let mut all = inits.flat_map(children);
        all.any(|pid| name(pid).ends_with("/go"))
    };
    assert!(eventually(PATIENCE, &mut is_preparing));
    running.signal(Signal::TERM);
    let answer = running.finish();
    assert!(answer.err().contains("cancelled"), "{}", answer.err());
    assert!(!answer.err().contains("internal error"), "{}", answer.err());
    let kept = hotcell.place("home/.cache/hotcell/toolchains");
    let kept = fs::read_dir(kept).map_or(0, |all| {
        all.flatten().filter(|it| it.path().is_dir()).count()
    });
    assert_eq!(kept, 0, "it was the preparation that was cancelled");
}
