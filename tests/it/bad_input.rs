//! What cannot be run: one line that says why, one that says what to do, exit code 2,
//! and nothing has happened.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Hotcell, Running, anyone, ordinary};

/// Code that would be seen if it ran.
const CODE: &str = "print('ran')";

#[test]
fn an_unknown_language_is_refused_with_the_nearest_names() {
    let Some(hotcell) = anyone() else { return };
    refused(
        &hotcell,
        &["-l", "pyton", "-c", CODE],
        "unknown language `pyton`",
        "Did you mean `python`?",
    );
    refused(
        &hotcell,
        &["-l", "shel", "-c", CODE],
        "unknown language `shel`",
        "Did you mean `shellscript`?",
    );
    refused(
        &hotcell,
        &["-l", "no\nsuch", "-c", CODE],
        "unknown language `no\\nsuch`",
        "Run `hotcell languages` for the list.",
    );
    // Nothing about it tells: a program that looks like one language would run as that.
    let odd = hotcell.write("home/a.unknown", "xyz\n");
    refused(
        &hotcell,
        &[odd.to_str().unwrap()],
        "cannot tell the language of `a.unknown`",
        "Name the language, as in `--language python`.",
    );
}

#[test]
fn code_that_is_empty_or_not_text_is_refused() {
    let Some(hotcell) = anyone() else { return };
    let empty = hotcell.write("home/empty.py", "");
    let blank = hotcell.write("home/blank.py", "\u{feff} \n\t\n");
    let nothing = "there is no code to run";
    let hint = "Give a file, `-c CODE`, or code on standard input.";
    for file in [&empty, &blank] {
        refused(&hotcell, &[file.to_str().unwrap()], nothing, hint);
    }
    refused(&hotcell, &["-l", "python", "-c", ""], nothing, hint);
    // Standard input is empty here.
    refused(&hotcell, &["-l", "python"], nothing, hint);

    let nul = hotcell.write("home/nul.py", format!("{CODE}\0"));
    refused(
        &hotcell,
        &[nul.to_str().unwrap()],
        "the code has a NUL byte",
        "Save the program as UTF-8 text.",
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    // Root reads everything.
    let Some(hotcell) = ordinary() else { return };
    let closed = hotcell.write("home/closed.py", CODE);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let folder = hotcell.make_folder("home/folder.py");
    let missing = hotcell.place("home/missing.py");
    for (path, reason, hint) in [
        (
            &missing,
            "No such file or directory (os error 2)",
            "Check the path.",
        ),
        (
            &closed,
            "Permission denied (os error 13)",
            "Check its permissions.",
        ),
        (
            &folder,
            "it is a folder without a `main` file, and without a package.json, pyproject.toml, go.mod, Cargo.toml or Makefile that says what to start",
            "Name the program's file, and add a folder with `--file`.",
        ),
    ] {
        let path = path.to_str().unwrap();
        refused(
            &hotcell,
            &[path],
            &format!("cannot read `{path}`: {reason}"),
            hint,
        );
    }
    for (path, hint) in [
        (&missing, "Check the path."),
        (&closed, "Check its permissions."),
    ] {
        let path = path.to_str().unwrap();
        let error = hotcell.run(&["-l", "python", "-c", CODE, "--file", path]);
        let told = format!("hotcell: cannot read `{path}`: ");
        assert!(error.err().starts_with(&told), "{}", error.err());
        assert!(
            error.err().ends_with(&format!("\nhint: {hint}\n")),
            "{}",
            error.err()
        );
    }
}

#[test]
fn a_number_that_means_nothing_is_refused() {
    let Some(hotcell) = anyone() else { return };
    let duration = ("a duration above zero", "`30s`, `1500ms` or `2m`");
    let size = ("a size above zero", "`512m` or `1g`");
    let count = ("a whole number above zero", "`16`");
    let processors = ("a number of processors above zero", "`1.5`");
    for (option, value, (expected, example)) in [
        ("--timeout", "soon", duration),
        ("--timeout", "0", duration),
        ("--timeout", "-1", duration),
        ("--timeout", "nan", duration),
        ("--memory", "12q", size),
        ("--memory", "-5", size),
        ("--pids", "1.5", count),
        ("--pids", "0", count),
        ("--cpus", "inf", processors),
        ("--output-limit", "", size),
    ] {
        refused(
            &hotcell,
            &["-l", "python", "-c", CODE, option, value],
            &format!("`{value}` is not {expected}"),
            &format!("Write it as in {example}."),
        );
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let Some(hotcell) = anyone() else { return };
    let file = hotcell.write("home/in.csv", "1");
    let file = file.to_str().unwrap();
    let inside = "Use a relative path inside the workspace, such as `data/in.csv`.";
    for (cell, reason) in [
        ("../in.csv", "it has `..`"),
        ("/etc/in.csv", "it is absolute"),
    ] {
        refused(
            &hotcell,
            &[
                "-l",
                "python",
                "-c",
                CODE,
                "--file",
                &format!("{file}:{cell}"),
            ],
            &format!("`{cell}` is not a path inside the workspace: {reason}"),
            inside,
        );
    }
    refused(
        &hotcell,
        &[
            "-l",
            "python",
            "-c",
            CODE,
            "--file",
            &format!("{file}:main.py"),
        ],
        "two files have the path `main.py`",
        "Give one of them another path: `--file HOST:PATH`.",
    );
    refused(
        &hotcell,
        &["-l", "python", "-c", CODE, "--env", "1A=x"],
        "`1A` is not a valid name for an environment variable",
        "Use letters, digits and `_`, not starting with a digit: `NAME=value`.",
    );
}

#[test]
fn arguments_that_make_no_sense_exit_with_2() {
    let Some(hotcell) = anyone() else { return };
    for arguments in [
        &["--nonsense"][..],
        &["--require", "lax", "-l", "python", "-c", CODE],
        &[
            "--require",
            "strict",
            "--allow-reduced",
            "-l",
            "python",
            "-c",
            CODE,
        ],
        &["-f", "main.py", "-c", CODE],
    ] {
        let answer = hotcell.run(arguments);
        assert_eq!((answer.code, answer.out()), (Some(2), String::new()));
        assert!(answer.err().starts_with("error: "), "{}", answer.err());
    }
    let mut command = hotcell.command();
    let odd = OsStr::from_bytes(b"print('ran')\xff");
    let answer = Running::start(command.args(["run", "-l", "python", "-c"]).arg(odd)).finish();
    assert_eq!((answer.code, answer.out()), (Some(2), String::new()));
}

/// Refused in words and as JSON, with nothing run.
fn refused(hotcell: &Hotcell, arguments: &[&str], message: &str, hint: &str) {
    let answer = hotcell.run(arguments);
    let expected = format!("hotcell: {message}\nhint: {hint}\n");
    assert_eq!(
        answer.whole(),
        (Some(2), String::new(), expected),
        "{arguments:?}"
    );

    let answer = hotcell.run(&[&["--json"], arguments].concat());
    let result = answer.json();
    assert_eq!((answer.code, answer.err()), (Some(2), String::new()));
    assert_eq!(result["status"], "rejected");
    assert_eq!(result["stdout"], "");
    let told = format!("{message}; nothing was executed");
    assert_eq!(result["error"]["message"], told.as_str());
    assert_eq!(result["error"]["hint"], hint);
}
