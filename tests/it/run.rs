//! `hotcell run`: where the program, its arguments, its input and its files come from,
//! and what comes back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::support::{Answer, Running, every_provider, everyone, has};

/// A language, its program, and code that prints its arguments as a JSON list.
const ARGUMENTS: [[&str; 3]; 3] = [
    [
        "python",
        "python3",
        "import json, sys; print(json.dumps(sys.argv[1:]))",
    ],
    [
        "javascript",
        "node",
        "console.log(JSON.stringify(process.argv.slice(2)))",
    ],
    [
        "shellscript",
        "bash",
        r#"exec python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@""#,
    ],
];

#[test]
fn stdout_stderr_and_the_exit_code_come_back_apart() {
    let code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nsys.exit(3)";
    for hotcell in every_provider() {
        let answer = hotcell.run(&["-l", "python", "-c", code]);
        assert_eq!(
            answer.whole(),
            (Some(3), "a\n".to_owned(), "b\n".to_owned())
        );

        let result = hotcell.json(&["-l", "python", "-c", code]);
        let facts = ["stdout", "stderr", "exit_code", "status"].map(|name| &result[name]);
        assert_eq!(
            facts,
            [&json!("a\n"), &json!("b\n"), &json!(3), &json!("failed")]
        );
    }
}

#[test]
fn a_program_comes_as_an_argument_a_file_or_on_standard_input() {
    for hotcell in everyone() {
        let file = hotcell.write("home/greet.py", "print(__file__, __name__)");
        let file = file.to_str().unwrap();
        let script = hotcell.write(
            "home/greet",
            "#!/usr/bin/env python3\nprint('by its first line')",
        );

        let said = |answer: Answer| (answer.code, answer.out());
        let told = |text: &str| (Some(0), format!("{text}\n"));
        let asked = ["-l", "python", "-c", "print('argument')"];
        assert_eq!(said(hotcell.run(&asked)), told("argument"));
        // A file keeps its name, and its extension tells the language.
        assert_eq!(
            said(hotcell.run(&[file])),
            told("/workspace/greet.py __main__")
        );
        assert_eq!(
            said(hotcell.run(&[script.to_str().unwrap()])),
            told("by its first line")
        );
        let piped = b"print('standard input')";
        assert_eq!(
            said(hotcell.run_with(piped, &["-l", "python"])),
            told("standard input")
        );
        assert_eq!(
            said(hotcell.run_with(piped, &["-l", "python", "-"])),
            told("standard input")
        );
    }
}

#[test]
fn arguments_reach_the_program_as_they_were_typed() {
    let typed = [
        "a b",
        "$HOME",
        "it's",
        "; touch pwned",
        "`id`",
        "",
        "-c",
        "--json",
        "*",
        "é\n\"\\",
    ];
    for hotcell in every_provider() {
        for [language, program, code] in ARGUMENTS {
            if !has(program) {
                continue;
            }
            let mut arguments = vec!["-l", language, "-c", code, "--"];
            arguments.extend(typed);
            let answer = hotcell.run(&arguments);
            assert_eq!(answer.json(), json!(typed), "{language}");

            let plan = hotcell.run(&[&["--plan"], &arguments[..]].concat()).json();
            let argv = plan["argv"].as_array().unwrap();
            assert_eq!(argv[argv.len() - typed.len()..], typed.map(Value::from));
        }
        // Where a shell of ours would have put it: the folder we were started in, where our own records are.
        let names = fs::read_dir(hotcell.home()).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert!(names.iter().all(|name| name == ".local"), "{names:?}");
    }
}

#[test]
fn the_program_reads_our_standard_input() {
    let echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())";
    for hotcell in every_provider() {
        let long: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        for input in [&b"one\ntwo"[..], b"", &long] {
            let answer = hotcell.run_with(input, &["-l", "python", "-c", echo]);
            assert_eq!(answer.code, Some(0), "{}", answer.err());
            assert!(answer.stdout == input, "{} bytes came", answer.stdout.len());
        }
        // A program on standard input has none left for itself.
        let code = b"import sys; print(repr(sys.stdin.read()))";
        assert_eq!(hotcell.run_with(code, &["-l", "python"]).out(), "''\n");
        // One that does not read its input ends all the same.
        assert_eq!(
            hotcell.run_with(&long, &["-l", "sh", "-c", "exit 4"]).code,
            Some(4)
        );
    }
}

#[test]
fn a_program_sees_the_documented_variables_and_no_others() {
    let programs = [
        (
            "python",
            "python3",
            "import os, json; print(json.dumps(dict(os.environ)))",
            &[][..],
        ),
        (
            "javascript",
            "node",
            "console.log(JSON.stringify(process.env))",
            &[],
        ),
        (
            "shellscript",
            "bash",
            "python3 -c 'import os, json; print(json.dumps(dict(os.environ)))'",
            // What bash itself exports to the programs it starts.
            &["PWD", "SHLVL", "_"],
        ),
    ];
    for hotcell in everyone() {
        for (language, program, code, own) in programs {
            if !has(program) {
                continue;
            }
            let mut command = hotcell.command();
            command.env("SECRET", "x").env("MY_API_KEY", "x");
            command.args(["run", "-l", language, "--env", "GIVEN=a=b c", "-c", code]);
            let answer = Running::start(&mut command).finish();
            let mut seen = answer.json().as_object().unwrap().clone();
            for name in own {
                seen.remove(*name);
            }
            let expected = json!({
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": "/workspace/.home",
                "LANG": "C.UTF-8",
                "OMP_NUM_THREADS": "1",
                "TMPDIR": "/tmp",
                "GIVEN": "a=b c",
            });
            assert_eq!(Value::from(seen), expected, "{language}");
        }
    }
}

#[test]
fn files_and_folders_are_placed_in_the_workspace_with_their_modes() {
    for hotcell in everyone() {
        hotcell.write("home/data/sub/x.txt", "inner");
        let tool = hotcell.write("home/data/tool", "#!/bin/sh\necho tool runs\n");
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("sub/x.txt", hotcell.place("home/data/link")).unwrap();
        symlink("/etc/passwd", hotcell.place("home/data/away")).unwrap();
        let secret = hotcell.write("home/in.csv", "of the host");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();

        let code = "cat data/link; echo; data/tool; cat deep/er/in.csv; echo\n\
                    stat -c '%a %n' data/sub/x.txt data/tool deep/er/in.csv tool\n\
                    cat data/away\necho changed > deep/er/in.csv; rm -r data";
        let place = |name: &str| hotcell.place(name).display().to_string();
        let answer = hotcell.run(&[
            "-l",
            "sh",
            "--file",
            &place("home/data"),
            "--file",
            &format!("{}:deep/er/", place("home/in.csv")),
            "--file",
            &format!("{}:tool", place("home/data/tool")),
            "-c",
            code,
        ]);
        let expected = "inner\ntool runs\nof the host\n\
                        644 data/sub/x.txt\n755 data/tool\n644 deep/er/in.csv\n755 tool\n\
                        root:x:0:0:root:/root:/usr/sbin/nologin\n\
                        nobody:x:65534:65534:nobody:/workspace/.home:/bin/sh\n";
        assert_eq!(
            answer.whole(),
            (
                Some(0),
                expected.to_owned(),
                "hotcell: left behind: deep/er/in.csv (8 bytes); `--out DIR` writes such files to a folder\n".to_owned()
            )
        );
        // What the program did to its copies is its own affair.
        assert_eq!(fs::read_to_string(&secret).unwrap(), "of the host");
        assert!(tool.exists());
    }
}

#[test]
fn a_user_whom_nobody_knows_needs_no_home() {
    for hotcell in everyone() {
        let mut command = hotcell.command();
        command.env_remove("HOME");
        command.args(["run", "-l", "sh", "-c", "echo $HOME"]);
        let answer = Running::start(&mut command).finish();
        let inside = "/workspace/.home\n".to_owned();
        assert_eq!(answer.whole(), (Some(0), inside, String::new()));
    }
}

#[test]
fn fontconfig_has_its_file_and_fonts_and_says_nothing() {
    if !has("fc-match") {
        return;
    }
    for hotcell in everyone() {
        let answer = hotcell.run(&["-l", "sh", "-c", "fc-match sans && fc-list | head -n 1"]);
        assert_eq!((answer.code, answer.err()), (Some(0), String::new()));
        assert!(!answer.out().is_empty());
        // Control: without the file it complains.
        let code = "FONTCONFIG_FILE=/none fc-match sans";
        let without = hotcell.run(&["-l", "sh", "-c", code]);
        assert!(without.err().contains("Fontconfig"), "{}", without.err());
    }
}

#[test]
fn names_that_every_unix_knows_are_known() {
    let code = "import grp, pwd, socket, sys
print(pwd.getpwuid(0).pw_name, grp.getgrgid(0).gr_name, pwd.getpwnam('nobody').pw_uid)
print(socket.getaddrinfo('localhost', 'http', type=socket.SOCK_STREAM)[0][4][1], socket.getservbyport(443))
print(socket.getprotobyname('tcp'), socket.getprotobyname('udp'))
import os
for folder in sys.path:
    path = os.path.join(folder, 'sitecustomize.py')
    assert os.path.exists(path) or not os.path.islink(path), path
";
    for hotcell in everyone() {
        let answer = hotcell.run(&["-l", "python", "-c", code]);
        let expected = "root root 65534\n80 https\n6 17\n";
        assert_eq!(
            answer.whole(),
            (Some(0), expected.to_owned(), String::new())
        );
    }
}
