//! The words of `hotcell run`: which are ours, which are the program's, and what was meant by others.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Answer, Hotcell, Running, everyone};

const ECHO: &str = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n";

fn hotcell(hotcell: &Hotcell, words: &[&str]) -> Answer {
    Running::start(hotcell.command().args(words)).finish()
}

#[test]
fn what_follows_the_program_is_the_programs() {
    for user in everyone() {
        let file = user.write("home/a.py", ECHO);
        let file = file.to_str().expect("text");
        for (words, expected) in [
            (&["run", file, "x", "y"][..], &["x", "y"][..]),
            (&[file, "x", "y"], &["x", "y"]),
            (&["-q", "--color", "never", file, "-q"], &["-q"]),
            (&["a.py", "--json", "-c"], &["--json", "-c"]),
            (
                &["run", "--timeout", "20", file, "--timeout", "1"],
                &["--timeout", "1"],
            ),
            (&["run", file, "--", "x"], &["x"]),
            (&["run", file, "x", "--", "y"], &["x", "--", "y"]),
            (&["run", "-f", file, "x", "-y"], &["x", "-y"]),
            (&["run", "-l", "python", file, "-l"], &["-l"]),
            (&["run", "python", "-f", file, "x"], &["x"]),
            (&["run", "-l", "python", "-c", ECHO, "x", "y"], &["x", "y"]),
            (&["run", "-l", "python", "-c", ECHO, "--", "-x"], &["-x"]),
            (&["run", "py", ECHO, "x", "--json"], &["x", "--json"]),
            (&["run", "py", "--timeout", "20", ECHO, "--", "x"], &["x"]),
        ] {
            let answer = hotcell(&user, words);
            assert_eq!(answer.code, Some(0), "{words:?}: {}", answer.err());
            assert_eq!(answer.json(), json!(expected), "{words:?}");
        }
        for words in [&["-l", "python", "-", "x"][..], &["python", "--", "x"]] {
            let answer = user.run_with(ECHO.as_bytes(), words);
            assert_eq!(answer.json(), json!(["x"]), "{words:?}");
        }
    }
}

#[test]
fn a_file_that_is_copied_is_the_program_where_there_is_no_other() {
    for user in everyone() {
        let file = user.write("home/a.py", "print('file')\n");
        let file = file.to_str().expect("text");
        for (words, expected) in [
            (&["run", "py", "--file", file][..], "file\n"),
            (
                &["run", "py", "print('inline')", "--file", file],
                "inline\n",
            ),
            (&["run", "py", "print('inline')", "-f", file], "inline\n"),
            (&["run", "py", "-f", file], "file\n"),
        ] {
            let answer = hotcell(&user, words);
            assert_eq!(answer.out(), expected, "{words:?}: {}", answer.err());
        }
        // What is piped comes before a file that is copied.
        let answer = user.run_with(b"print('piped')", &["py", "--file", file]);
        assert_eq!(answer.out(), "piped\n", "{}", answer.err());
        let answer = hotcell(&user, &["run", "--file", file]);
        assert_eq!(
            answer.code,
            Some(2),
            "a language must be named: {}",
            answer.out()
        );
    }
}

#[test]
fn a_script_with_our_name_in_its_first_line_takes_arguments() {
    for user in everyone() {
        let script = user.write(
            "home/tool",
            "#!/usr/bin/env -S hotcell run -l python\nimport sys\nprint(sys.argv[1:])\n",
        );
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&script, mode).expect("a mode");
        let mut command = std::process::Command::new(&script);
        user.dress(&mut command);
        let path = format!("{}:/usr/bin:/bin", user.place("bin").display());
        command.env("PATH", path).args(["a b", "--json"]);
        let answer = Running::start(&mut command).finish();
        assert_eq!(answer.out(), "['a b', '--json']\n", "{}", answer.err());
    }
}

#[test]
fn a_mistyped_word_gets_a_suggestion() {
    let user = everyone().remove(0);
    for (words, expected) in [
        (&["rnu", "x"][..], "Did you mean `hotcell run`?"),
        (&["langages"], "Did you mean `hotcell languages`?"),
        (&["python"], "Write `hotcell run python`"),
        (&["pyton"], "Did you mean `python`?"),
        (&["run", "pyton", "print(1)"], "Did you mean `python`?"),
        (&["run", "pyton", "-f", "x"], "Did you mean `python`?"),
        (&["run", "-l", "pyton", "-c", "x"], "Did you mean `python`?"),
        (
            &["run", "--lang", "pyton", "-c", "x"],
            "Did you mean `python`?",
        ),
        (&["install"], "claude-code, claude-desktop, cursor"),
        (&["repl", "pyton"], "Did you mean `python`?"),
        (&["languages", "pyton"], "Did you mean `python`?"),
        (&["languages", "add", "pyton"], "Did you mean `python`?"),
        (
            &["packages", "add", "-l", "pyton", "x"],
            "Did you mean `python`?",
        ),
        (
            &["run", "--engine", "nod", "-l", "js", "-c", "1"],
            "Did you mean `node`?",
        ),
        (&["run", "--tiemout", "1", "x.py"], "'--timeout'"),
        (&["--timeout=1", "x.py"], "Write `hotcell run --timeout=1`"),
        (
            &["--quiet", "langages"],
            "Did you mean `hotcell languages`?",
        ),
        (&["missing.py"], "cannot read `missing.py`"),
        (&["print(1)"], "Write `hotcell run -c CODE` to run code."),
        (
            &["import os; print(os.sep)"],
            "hint: Give a file, `-c CODE`",
        ),
        (
            &["run", "-l", "python", "print(1)"],
            "hint: Give a file, `-c CODE`",
        ),
        (
            &["run", "zzzzqqqq", "x"],
            "Unknown language: \"zzzzqqqq\". Use \"js\" or \"py\".",
        ),
    ] {
        let answer = hotcell(&user, words);
        // In the form of a language and a program its own exit code (`b15_...`).
        let is_two_words = words[0] == "run" && !words[1].starts_with('-');
        let code = if is_two_words { 1 } else { 2 };
        assert_eq!(answer.code, Some(code), "{words:?}");
        assert!(
            answer.err().contains(expected),
            "{words:?}: {}",
            answer.err()
        );
    }
}

#[test]
fn a_file_behind_two_dashes_is_the_program_if_nothing_else_can_be() {
    for user in everyone() {
        let file = user.write("home/a.py", ECHO);
        let file = file.to_str().expect("text");
        let mut command = user.command();
        command.args(["run", "--", file, "x", "--json"]);
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "[\"x\", \"--json\"]\n");
        // What is piped is the program, and what is named its argument.
        let answer = user.run_with(ECHO.as_bytes(), &["-l", "python", "--", file]);
        assert_eq!(answer.json(), json!([file]), "{}", answer.err());
    }
}

#[test]
fn one_language_can_be_looked_up() {
    let user = everyone().remove(0);
    let answer = hotcell(&user, &["languages", "js"]);
    assert_eq!(answer.out().lines().count(), 1, "{}", answer.out());
    assert!(answer.out().starts_with("javascript "), "{}", answer.out());
}

#[test]
fn every_command_ends_quietly_when_nobody_reads() {
    let user = everyone().remove(0);
    for words in [
        "--help",
        "help",
        "help config",
        "run --help",
        "languages",
        "config",
        "config schema",
        "config check",
        "completions bash",
        "logs",
        "token",
        "servers",
        "saved",
        "packages list",
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = user.command();
        command.args(words.split(' ')).stdin(Stdio::null());
        let output = command.stdout(writer).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("internal error"), "{words}: {said}");
        assert!(!said.contains("Broken pipe"), "{words}: {said}");
    }
}
