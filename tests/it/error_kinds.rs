//! Failures are told apart by `error.kind` alone (T-E1 to T-E7).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::raw::{PATIENCE, Stdio};
use crate::support::{anyone, has, has_heavy};

fn code(language: &str, code: &str) -> Value {
    json!({ "code": code, "language": language })
}

/// The error of a run that must have failed with this status.
fn error(client: &mut Stdio, arguments: Value, status: &str) -> Value {
    let result = client.call("run", arguments.clone());
    let record = &result["structuredContent"];
    assert_eq!(record["status"], status, "{arguments}: {record}");
    assert_eq!(result["isError"], true);
    record["error"].clone()
}

#[test]
fn te1_a_program_that_does_not_parse_is_a_syntax_error_with_its_line() {
    let mut client = Stdio::open(&[]);
    for (language, file) in [
        ("python", "main.py"),
        ("javascript", "main.js"),
        ("shellscript", "main.sh"),
    ] {
        let first = error(&mut client, code(language, "def f(:"), "failed");
        assert_eq!(first["kind"], "syntax", "{language}: {first}");
        assert_eq!(first["line"], 1);
        assert_eq!(first["file"], file);
    }
    let second = error(&mut client, code("python", "x = 1\nif x:\ny = 2"), "failed");
    assert_eq!(
        (&second["kind"], &second["line"]),
        (&json!("syntax"), &json!(3))
    );
    // What a running program fails to parse is its own exception.
    for (language, text) in [
        ("python", "eval('1+')"),
        ("javascript", "JSON.parse('{')"),
        ("javascript", "eval('1+')"),
    ] {
        let thrown = error(&mut client, code(language, text), "failed");
        assert_eq!(thrown["kind"], "exception", "{text}: {thrown}");
        assert_eq!(thrown["line"], 1);
    }
}

#[test]
fn te2_an_import_that_is_not_there_is_a_missing_module_with_its_name() {
    let mut client = Stdio::open(&[]);
    for (language, text) in [
        ("python", "print('before')\nimport nosuchmod_xyz"),
        ("javascript", "\nrequire('nosuchmod_xyz')"),
        ("shellscript", "echo before\nnosuchmod_xyz"),
    ] {
        let missing = error(&mut client, code(language, text), "failed");
        assert_eq!(missing["kind"], "missing_module", "{language}: {missing}");
        assert_eq!(missing["module"], "nosuchmod_xyz");
        assert_eq!(missing["line"], 2, "{missing}");
        assert!(missing["hint"].is_string());
    }
    let import = "import x from 'nosuchmod_xyz'; console.log(x)";
    let missing = error(
        &mut client,
        json!({ "code": "import('./m.mjs')", "language": "javascript", "files": { "m.mjs": import } }),
        "failed",
    );
    assert_eq!(missing["kind"], "missing_module", "{missing}");
    assert_eq!(missing["module"], "nosuchmod_xyz");
}

#[test]
fn an_exception_or_a_code_of_its_own_is_an_exception_with_its_place() {
    let mut client = Stdio::open(&[]);
    for (language, text, line) in [
        (
            "python",
            "def f():\n    raise ValueError('x')\n\nf()",
            json!(2),
        ),
        (
            "javascript",
            "function f() {\n  throw new Error('x')\n}\nf()",
            json!(2),
        ),
        ("python", "import sys; sys.exit(3)", Value::Null),
        ("javascript", "process.exit(3)", Value::Null),
        ("shellscript", "exit 3", Value::Null),
    ] {
        let thrown = error(&mut client, code(language, text), "failed");
        assert_eq!(thrown["kind"], "exception", "{text}: {thrown}");
        assert_eq!(thrown["line"], line, "{text}: {thrown}");
    }
}

#[test]
fn te3_a_language_without_its_program_is_a_missing_runtime() {
    let mut client = Stdio::start_as(&[], |command, home| {
        let empty = home.join("empty");
        std::fs::create_dir(&empty).expect("a folder");
        command.env("PATH", empty);
    });
    client.initialize("2025-11-25");
    for (language, searched) in [
        ("python", "python3"),
        ("ruby", "ruby"),
        ("shellscript", "bash"),
    ] {
        let missing = error(&mut client, code(language, "1"), "rejected");
        assert_eq!(missing["kind"], "missing_runtime", "{missing}");
        let message = missing["message"].as_str().expect("text");
        assert!(message.contains(searched) && message.contains("nothing was executed"));
    }
}

#[test]
fn te4_an_endless_loop_is_a_timeout_in_time() {
    let mut client = Stdio::open(&[]);
    // The first run of a process pays for the sandbox's start.
    client.run(code("python", "1"));
    for (language, text) in [
        ("python", "print('first', flush=True)\nwhile True: pass"),
        ("javascript", "console.log('first'); while(true){}"),
        ("shellscript", "echo first; while :; do :; done"),
    ] {
        let start = Instant::now();
        let arguments = json!({ "code": text, "language": language, "timeout": 1 });
        let record = client.run(arguments);
        let took = start.elapsed();
        assert_eq!(record["error"]["kind"], "timeout", "{record}");
        assert_eq!(
            record["stdout"], "first\n",
            "what was printed until then is kept"
        );
        assert!(took >= Duration::from_secs(1), "{took:?}");
        assert!(took < PATIENCE, "{took:?}");
    }
}

#[test]
fn te5_all_memory_at_once_or_bit_by_bit_is_the_same_kind() {
    let mut client = Stdio::open(&[]);
    for (language, text) in [
        ("python", "x = bytearray(10**10)"),
        ("python", "x = []\nwhile True: x.append(b'y' * 10_000_000)"),
        ("javascript", "new Uint8Array(4e9).fill(1)"),
        (
            "javascript",
            "const x = []; while (true) x.push(Buffer.alloc(1e7, 1))",
        ),
        (
            "shellscript",
            "x=$(printf '%9999999s'); while :; do x=$x$x; done",
        ),
    ] {
        let result = client.call("run", code(language, text));
        let record = &result["structuredContent"];
        assert_eq!(record["error"]["kind"], "memory", "{text}: {record}");
        // Which of them the kernel ends, and which are refused memory and end by themselves, is the host's affair.
        let is_ended = record["status"] == "memory" && record["exit_code"].is_null();
        let has_failed = ["failed", "killed"]
            .map(Value::from)
            .contains(&record["status"]);
        assert!(is_ended || has_failed, "{text}: {record}");
    }
}

#[test]
fn a_program_that_only_says_that_it_has_no_memory_does_not_get_the_kernel_s_word_for_it() {
    let mut client = Stdio::open(&[]);
    let said = "import sys; print('MemoryError', file=sys.stderr); sys.exit(1)";
    let killed = "import os, sys; print('MemoryError', file=sys.stderr, flush=True); os.abort()";
    for (text, status) in [(said, "failed"), (killed, "killed")] {
        let forged = error(&mut client, code("python", text), status);
        let message = forged["message"].as_str().expect("words");
        assert_eq!(forged["kind"], "memory", "{forged}");
        assert!(
            message.ends_with(": it says that it got no more memory"),
            "{forged}"
        );
    }
    // Control: one that the kernel ends at its limit has the status, whatever it printed.
    let eaten = "x = []\nwhile True: x.append(b'y' * 10_000_000)";
    let true_one = error(&mut client, code("python", eaten), "memory");
    let message = true_one["message"].as_str().expect("words");
    assert!(
        message.contains("was ended at its memory limit"),
        "{true_one}"
    );
}

#[test]
fn te6_a_signal_of_its_own_is_a_signal_with_its_name() {
    let mut client = Stdio::open(&[]);
    for (language, text) in [
        ("python", "import os; os.kill(os.getpid(), 11)"),
        (
            "javascript",
            "process.kill(process.pid, 'SIGSEGV'); while(true){}",
        ),
        ("shellscript", "kill -SEGV $$"),
    ] {
        let record = client.run(code(language, text));
        assert_eq!(record["status"], "killed", "{record}");
        assert_eq!(record["error"]["kind"], "signal");
        assert_eq!(record["signal"], "SIGSEGV");
    }
}

#[test]
fn te7_a_slip_of_the_hand_is_an_unknown_language_with_the_right_one() {
    let mut client = Stdio::open(&[]);
    for (asked, meant) in [("pyhton", "python"), ("javascirpt", "javascript")] {
        let unknown = error(&mut client, code(asked, "1"), "rejected");
        assert_eq!(unknown["kind"], "unknown_language", "{unknown}");
        let hint = unknown["hint"].as_str().expect("a hint");
        assert!(hint.contains(meant), "{hint}");
    }
}

#[test]
fn a_hint_names_what_its_reader_has() {
    let Some(hotcell) = anyone() else { return };
    let mut client = Stdio::open(&[]);
    let two = ["a/x.txt:x.txt", "b/x.txt:x.txt"];
    for path in ["home/a/x.txt", "home/b/x.txt"] {
        hotcell.write(path, "x");
    }
    for (call, arguments, status, tool, shell) in [
        (
            json!({ "code": " " }),
            vec!["-c", " "],
            "rejected",
            "Give the program in `code`.",
            "Give a file, `-c CODE`, or code on standard input.",
        ),
        (
            json!({ "code": "x y z" }),
            vec!["-c", "x y z"],
            "rejected",
            "Name the `language`.",
            "Name the language, as in `--language python`.",
        ),
        (
            json!({ "code": "1", "language": "qqqqqqqq" }),
            vec!["-l", "qqqqqqqq", "-c", "1"],
            "rejected",
            "Read `hotcell://languages` for the list.",
            "Run `hotcell languages` for the list.",
        ),
        (
            json!({ "code": "1", "language": "python", "files": { "x.txt": "", "./x.txt": "" } }),
            vec![
                "-l", "python", "-c", "1", "--file", two[0], "--file", two[1],
            ],
            "rejected",
            "Give one of them another path in `files`.",
            "Give one of them another path: `--file HOST:PATH`.",
        ),
        (
            json!({ "code": "input()", "language": "python" }),
            vec!["-l", "python", "-c", "input()"],
            "failed",
            "Give the program its input as `stdin`.",
            "Give the program its input on standard input.",
        ),
        (
            json!({ "code": "require('jsr:@a/b')", "language": "javascript@embedded", "packages": [] }),
            vec![
                "-l",
                "javascript@embedded",
                "-c",
                "require('jsr:@a/b')",
                "--no-packages",
            ],
            "failed",
            "Run it with deno and grant its host: `javascript@deno` with `network`; `hotcell languages add deno` brings deno.",
            "Run it with deno and grant its host: `javascript@deno` with `--network HOST`; `hotcell languages add deno` brings deno.",
        ),
        (
            json!({ "code": "import nosuchmod_xyz", "language": "python", "packages": [] }),
            vec![
                "-l",
                "python",
                "-c",
                "import nosuchmod_xyz",
                "--no-packages",
            ],
            "failed",
            "Name its package in `packages`, or pass the module as a file.",
            "Name its package with `--package`, or pass the module as a file.",
        ),
    ] {
        assert_eq!(error(&mut client, call, status)["hint"], tool);
        let result = hotcell.json(&arguments);
        assert_eq!(
            (&result["status"], &result["error"]["hint"]),
            (&json!(status), &json!(shell))
        );
    }
}

#[test]
fn javascript_of_another_server_is_granted_hosts_where_that_server_took_them() {
    let mut client = Stdio::open(&["--as", "code-runner-mcp"]);
    let code = "try { await fetch('http://evil.test/'); } catch (error) { console.error(error); process.exit(1); }";
    let result = client.call("javascript-code-runner", json!({ "code": code }));
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["kind"], "denied", "{result}");
    let hint = error["hint"].as_str().expect("a hint");
    assert!(
        hint.starts_with("Start the server with DENO_PERMISSION_ARGS=--allow-net="),
        "{hint}"
    );
}

fn is_here(runtime: &str) -> bool {
    match runtime {
        "go" | "rustc" | "javac" | "Rscript" | "dotnet" => has_heavy(runtime),
        _ => has(runtime),
    }
}

#[test]
fn what_a_compiler_misses_is_a_missing_module_with_its_name() {
    let Some(hotcell) = anyone() else { return };
    for (language, runtime, code, module) in [
        (
            "c",
            "gcc",
            "#include <nothing/of_this.h>\nint main(void) { return 0; }",
            "nothing/of_this.h",
        ),
        (
            "cpp",
            "g++",
            "#include \"nothing.hpp\"\nint main() { return 0; }",
            "nothing.hpp",
        ),
        (
            "go",
            "go",
            "package main\n\nimport \"nothingofthis\"\n\nfunc main() { nothingofthis.Do() }",
            "nothingofthis",
        ),
        (
            "rust",
            "rustc",
            "use nothing_of_this::x;\nfn main() { x(); }",
            "nothing_of_this",
        ),
    ] {
        if !is_here(runtime) {
            continue;
        }
        let result = hotcell.json(&["--no-packages", "-l", language, "-c", code]);
        let error = &result["error"];
        assert_eq!(error["kind"], "missing_module", "{language}: {result:#}");
        assert_eq!(error["module"], module, "{language}: {error:#}");
    }
}

#[test]
fn a_program_that_reads_past_its_input_is_told_to_give_some() {
    let Some(hotcell) = anyone() else { return };
    for (language, runtime, code) in [
        ("python", "python3", "input()"),
        ("ruby", "ruby", "$stdin.readline"),
        (
            "java",
            "javac",
            "class Main { public static void main(String[] a) { new java.util.Scanner(System.in).nextLine(); } }",
        ),
        // These have a value for it, and fail at what they do with that.
        (
            "js",
            "node",
            "console.log(JSON.parse(require('fs').readFileSync(0, 'utf8')).x)",
        ),
        (
            "ts",
            "node",
            "const x: string = require('fs').readFileSync(0, 'utf8'); console.log(JSON.parse(x))",
        ),
        ("perl", "perl", "my $x = <STDIN> // die 'no name'; print $x"),
        ("lua", "sh", "print(io.read('l'):upper())"),
        ("php", "php", "<?php echo 1 / strlen(fgets(STDIN));"),
        (
            "r",
            "Rscript",
            "x <- readLines(file('stdin'), 1); stopifnot(length(x) == 1)",
        ),
        (
            "go",
            "go",
            "package main\nimport \"fmt\"\nfunc main() { var s string; if _, e := fmt.Scan(&s); e != nil { panic(e) } }",
        ),
        (
            "rust",
            "rustc",
            "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap(); let _: i32 = s.trim().parse().unwrap(); }",
        ),
        (
            "c",
            "gcc",
            "#include <stdio.h>\nint main(void) { int n; return scanf(\"%d\", &n) == 1 ? 0 : 1; }",
        ),
        ("csharp", "dotnet", "int.Parse(System.Console.ReadLine()!);"),
        ("bash", "bash", "read x || exit 1"),
        ("tcl", "tclsh", "if {[gets stdin x] < 0} { error none }"),
    ] {
        if !is_here(runtime) {
            continue;
        }
        let result = hotcell.json(&["--timeout", "60", "-l", language, "-c", code]);
        let hint = "Give the program its input on standard input.";
        assert_eq!(result["error"]["hint"], hint, "{language}: {result:#}");
        // At the command line it comes behind what the program says, unless only errors are wished.
        let words = ["--timeout", "60", "-l", language, "-c", code];
        let said = hotcell.run(&words).err();
        assert!(
            said.ends_with(&format!("hint: {hint}\n")) && !said.contains("hotcell:"),
            "{language}: {said}"
        );
        let quiet = hotcell.run(&[&["--quiet"], &words[..]].concat()).err();
        assert!(!quiet.contains("hint:"), "{language}: {quiet}");
    }
    // Control: one that had some failed for another reason, and so did one that reads nothing.
    let code = "import sys; sys.stdin.read(); sys.exit(3)";
    let told = |answer: crate::support::Answer| answer.json()["error"]["hint"].clone();
    let had = told(hotcell.run_with(b"x", &["--json", "-l", "python", "-c", code]));
    let none = told(hotcell.run(&["--json", "-l", "python", "-c", "import sys; sys.exit(3)"]));
    let file = "cat nothing.txt | while read x; do echo $x; done; exit 4";
    let file = told(hotcell.run(&["--json", "-l", "bash", "-c", file]));
    assert_eq!([had, none, file], [const { serde_json::Value::Null }; 3]);
}
