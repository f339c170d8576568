//! Languages as data: a file adds one or replaces one, nothing is compiled again, and a
//! file that cannot be read is an error of its own language alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::support::{Hotcell, Running, anyone, everyone, has, open_to_all};

const CONFIG: &str = "home/config/hotcell/languages";

/// What a program's file begins with is for its runtime to judge: the same comes out as without a sandbox.
#[test]
fn a_byte_order_mark_stays_in_the_programs_file() {
    for hotcell in everyone() {
        for (program, language, code) in [
            ("python3", "python", "print(open(__file__, 'rb').read(3))"),
            ("python3", "python", "import sys; print(len(sys.argv))"),
            (
                "node",
                "javascript",
                "console.log(require('fs').readFileSync(__filename).subarray(0, 3))",
            ),
            (
                "perl",
                "perl",
                "open F, '<:raw', $0; read F, $x, 3; print unpack('H*', $x), \"\\n\";",
            ),
            ("bash", "bash", "echo one\necho two\n"),
            ("php", "php", "<?php echo 1;"),
        ] {
            if !has(program) {
                continue;
            }
            let code = format!("\u{feff}{code}");
            let file = hotcell.write("home/marked", &code);
            let plain = Command::new(program).arg(&file).output().expect("it runs");
            let ours = run(&hotcell, &["-l", language, file.to_str().expect("text")]);
            let plain = (
                plain.status.code(),
                String::from_utf8_lossy(&plain.stdout).into_owned(),
            );
            assert_eq!((ours.code, ours.out()), plain, "{language}: {}", ours.err());
        }
        for (language, code) in [
            ("javascript@embedded", "console.log(1)"),
            ("lua@embedded", "print(1)"),
            ("scheme@embedded", "(display 1) (newline)"),
        ] {
            let answer = run(
                &hotcell,
                &["-l", language, "-c", &format!("\u{feff}{code}")],
            );
            assert_eq!(answer.out(), "1\n", "{language}: {}", answer.err());
        }
        // It tells nothing of the language.
        let told = run(&hotcell, &["-c", "\u{feff}#!/usr/bin/env bash\necho two\n"]);
        assert_eq!(told.out(), "two\n", "{}", told.err());
    }
}

#[test]
fn php_with_statements_and_no_tag_is_run_and_other_text_is_printed() {
    let Some(hotcell) = anyone().filter(|_| has("php")) else {
        return;
    };
    for (code, said) in [
        ("echo 1 + 1;", "2"),
        (
            "#!/usr/bin/env php\nforeach ([1, 2] as $x) { echo $x; }\n",
            "12",
        ),
        ("<?php echo 3;", "3"),
        ("<b><?= 4 ?></b>", "<b>4</b>"),
        // Templates: PHP prints what is outside of its tags.
        ("Hello, you", "Hello, you"),
        (
            "<style>a { color: red; }</style>",
            "<style>a { color: red; }</style>",
        ),
    ] {
        let answer = run(&hotcell, &["-l", "php", "-c", code]);
        assert_eq!(answer.out(), said, "{code}: {}", answer.err());
    }
    // Also where it is recognised, and its lines keep their numbers.
    let code = "$names = ['a', 'b'];\necho implode(',', array_map('strtoupper', $names)), PHP_EOL;\nthrow new Exception('x');";
    let result = hotcell.json(&["-c", code]);
    assert_eq!(
        (&result["language"], &result["stdout"]),
        (&"php".into(), &"A,B\n".into()),
        "{result:#}"
    );
    assert_eq!(result["error"]["line"], 3, "{result:#}");
}

#[test]
fn a_file_adds_a_language() {
    for hotcell in everyone() {
        // Control: nobody knows it yet.
        let asked = ["-l", "tally", "-c", "a\nb\n", "--", "-l"];
        let unknown = run(&hotcell, &asked);
        assert_eq!(unknown.code, Some(2), "{}", unknown.err());
        assert!(unknown.err().contains("unknown language `tally`"));

        define(
            &hotcell,
            "tally",
            "name = \"Tally\"\naliases = [\"count\"]\nextensions = [\"tly\"]\n\
             [runtime]\ncommands = [\"wc\"]\n[source]\nfile = \"main.tly\"\n\
             [run]\nargv = [\"{runtime}\", \"{args...}\", \"{file}\"]\n[env]\nLC_ALL = \"C\"\n",
        );
        let said = |arguments: &[&str]| {
            let answer = run(&hotcell, arguments);
            (answer.code, answer.out())
        };
        let two = |name: &str| (Some(0), format!("2 {name}\n"));
        assert_eq!(said(&asked), two("main.tly"));
        assert_eq!(
            said(&["-l", "Count", "-c", "a\nb\n", "--", "-l"]),
            two("main.tly")
        );
        let file = hotcell.write("home/some.tly", "a\nb\n");
        assert_eq!(said(&[file.to_str().unwrap(), "--", "-l"]), two("some.tly"));

        let row = row(&hotcell, "tally");
        assert_eq!(row["name"], "Tally");
        assert_eq!(row["aliases"], serde_json::json!(["count"]));
        assert!(row["path"].as_str().unwrap().ends_with("/wc"), "{row}");
    }
}

#[test]
fn a_file_replaces_a_language() {
    for hotcell in everyone() {
        let asked = ["-l", "python", "-c", "print(1)"];
        assert_eq!(run(&hotcell, &asked).out(), "1\n");
        define(
            &hotcell,
            "python",
            "name = \"Not Python\"\n[runtime]\ncommands = [\"cat\"]\n[source]\nfile = \"main.txt\"\n\
             [run]\nargv = [\"{runtime}\", \"{file}\"]\n",
        );
        assert_eq!(run(&hotcell, &asked).out(), "print(1)");
        assert_eq!(row(&hotcell, "python")["name"], "Not Python");
        // The others are as they were.
        assert_eq!(run(&hotcell, &["-l", "sh", "-c", "echo 2"]).out(), "2\n");
    }
}

#[test]
fn a_broken_file_is_named_with_its_line_and_breaks_no_other() {
    let Some(hotcell) = anyone() else { return };
    define(
        &hotcell,
        "broken",
        "name = \"Broken\"\n[runtime]\ncommands = [\"cat\"\n",
    );
    define(
        &hotcell,
        "wrong",
        "name = \"Wrong\"\n[runtime]\ncommands = [\"cat\"]\nshell = true\n",
    );
    let file = |id: &str| hotcell.place(CONFIG).join(format!("{id}.toml"));

    for (id, line) in [("broken", 3), ("wrong", 4)] {
        let place = format!("{}:{line}: ", file(id).display());
        let problem = row(&hotcell, id)["problem"].as_str().unwrap().to_owned();
        assert!(problem.starts_with(&place), "{problem}");
        let answer = run(&hotcell, &["-l", id, "-c", "x"]);
        assert_eq!(answer.code, Some(2));
        assert!(
            answer.err().starts_with(&format!("hotcell: {place}")),
            "{}",
            answer.err()
        );
        let hint = format!("hint: Correct or remove {}.\n", file(id).display());
        assert!(answer.err().ends_with(&hint), "{}", answer.err());
    }
    assert_eq!(
        run(&hotcell, &["-l", "sh", "-c", "echo fine"]).out(),
        "fine\n"
    );

    // In words too.
    let listed = start(&hotcell, &["languages"]).finish();
    assert_eq!(listed.code, Some(0));
    let place = format!("{}:4: ", file("wrong").display());
    assert!(listed.out().contains(&place), "{}", listed.out());
    assert!(listed.out().lines().any(|line| line.starts_with("python ")));
}

#[test]
fn the_table_says_where_a_runtime_comes_from_and_whether_it_waits() {
    let Some(hotcell) = anyone() else { return };
    let words = |id: &str| {
        let row = row(&hotcell, id);
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        [text("from"), text("start")]
    };
    assert_eq!(words("python"), ["system", "warm"]);
    assert_eq!(words("sed"), ["system", "cold"]);
    // It cannot run here at all.
    assert_eq!(words("bat"), ["-", "-"]);
    let listed = start(&hotcell, &["languages"]).finish().out();
    let line = listed.lines().find(|line| line.starts_with("python "));
    let columns: Vec<&str> = line.expect("a line").split_whitespace().collect();
    assert_eq!(columns[2..4], ["system", "warm"], "{columns:?}");
}

#[test]
fn a_language_without_a_runtime_is_refused_with_what_was_searched() {
    let Some(hotcell) = anyone() else { return };
    let mut command = hotcell.command();
    let empty = hotcell.make_folder("home/empty");
    command.env("PATH", &empty);
    let answer = Running::start(command.args(["run", "-l", "python", "-c", "print(1)"])).finish();
    assert_eq!((answer.code, answer.out()), (Some(2), String::new()));
    let told = "hotcell: no runtime for `python`: no usable python3 or python in PATH\n";
    let hint = "hint: Install it: `hotcell languages add python`.\n";
    assert_eq!(answer.err(), format!("{told}{hint}"));

    // With a package manager in PATH there is another way.
    let apt = hotcell.write("home/empty/apt", "");
    fs::set_permissions(&apt, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = hotcell.command();
    command.env("PATH", &empty);
    let answer = Running::start(command.args(["run", "-l", "python", "-c", "print(1)"])).finish();
    let hint = "hint: Install it: `hotcell languages add python`, or `apt install python3`.\n";
    assert_eq!(
        (answer.code, answer.err()),
        (Some(2), format!("{told}{hint}"))
    );
}

#[test]
fn several_languages_are_added_at_once_or_none_if_one_is_misspelled() {
    for hotcell in everyone() {
        // Stands for the system's own, which would change this machine: it writes down what it is asked for.
        let asked = hotcell.place("home/asked");
        let script = format!("#!/bin/sh\necho \"$@\" >>'{}'\n", asked.display());
        let apt = hotcell.write("home/only/apt-get", script);
        fs::set_permissions(&apt, fs::Permissions::from_mode(0o755)).unwrap();
        let add = |languages: &[&str]| {
            let mut command = hotcell.command();
            command.env("PATH", apt.parent().unwrap());
            command.args(["languages", "add", "--apt"]).args(languages);
            Running::start(&mut command).finish()
        };

        let answer = add(&["ruby", "phq"]);
        assert_eq!(answer.code, Some(2));
        let hint = "Did you mean `php`";
        assert!(answer.err().contains(hint), "{}", answer.err());
        assert!(!asked.exists(), "something was installed");

        let answer = add(&["ruby", "php"]);
        let install = "install -y --no-install-recommends ruby php-cli";
        if hotcell.uid == 0 {
            assert_eq!(answer.code, Some(0), "{}", answer.err());
            assert_eq!(fs::read_to_string(asked).unwrap(), format!("{install}\n"));
        } else {
            let hint = format!("hint: Run `apt-get {install}` as root, or leave --apt out.\n");
            assert!(answer.err().ends_with(&hint), "{}", answer.err());
            assert!(!asked.exists(), "something was installed");
        }
    }
}

fn define(hotcell: &Hotcell, id: &str, text: &str) {
    let file = hotcell.write(&format!("{CONFIG}/{id}.toml"), text);
    open_to_all(&file);
}

fn run(hotcell: &Hotcell, arguments: &[&str]) -> crate::support::Answer {
    start(hotcell, &[&["run"], arguments].concat()).finish()
}

fn start(hotcell: &Hotcell, arguments: &[&str]) -> Running {
    let mut command = hotcell.command();
    command.env("XDG_CONFIG_HOME", hotcell.place("home/config"));
    Running::start(command.args(arguments))
}

/// A language's row in `hotcell languages --json`.
fn row(hotcell: &Hotcell, id: &str) -> Value {
    let listed = start(hotcell, &["languages", "--json"]).finish().json();
    let rows = listed.as_array().expect("a list").iter();
    let mut ours = rows.filter(|row| row["id"] == id);
    ours.next().expect("it is listed").clone()
}

#[test]
fn every_runtime_that_is_there_tells_its_version() {
    let Some(hotcell) = crate::support::anyone() else {
        return;
    };
    let listed = hotcell.command().args(["languages", "--json"]).output();
    let listed = listed.expect("it starts").stdout;
    let rows: Value = serde_json::from_slice(&listed).expect("JSON");
    let rows = rows.as_array().expect("rows").iter();
    let there: Vec<&Value> = rows.filter(|row| row["available"] == true).collect();
    assert!(there.len() > 10, "{}", there.len());
    let silent = there.iter().filter(|row| row["version"].is_null());
    let silent: Vec<&Value> = silent.map(|row| &row["id"]).collect();
    assert_eq!(silent, Vec::<&Value>::new());
}

#[test]
fn a_comment_or_a_line_for_an_editor_names_the_language() {
    let Some(hotcell) = crate::support::anyone() else {
        return;
    };
    for (code, language, printed) in [
        ("# ruby\nx = 5\nputs x", "ruby", "5\n"),
        ("# -*- mode: python -*-\nx = 1\nprint(x)", "python", "1\n"),
        ("x = 5\nputs x\n# vim: set ft=ruby:", "ruby", "5\n"),
        ("-- lua\nx = 1\nprint(x)", "lua", "1\n"),
        (
            "// javascript\nlet x = 1\nconsole.log(x)",
            "javascript",
            "1\n",
        ),
    ] {
        let result = hotcell.json(&["-c", code]);
        assert_eq!(
            (
                &result["language"],
                &result["stdout"],
                &result["detected"]["by"]
            ),
            (&language.into(), &printed.into(), &"comment".into()),
            "{code}: {result}"
        );
    }
    // Control: prose is none, and a program of which nothing is said is asked about.
    let prose = hotcell.json(&["-c", "# ruby is a gem\nx = 1"]);
    assert_eq!(prose["error"]["kind"], "ambiguous_language", "{prose}");
    // What bc would not read without the end of its line.
    if crate::support::has("bc") {
        assert_eq!(hotcell.json(&["-l", "bc", "-c", "1+1"])["stdout"], "2\n");
    }
    assert_eq!(hotcell.json(&["-l", "python", "-c", "1+1"])["value"], 2);
}
