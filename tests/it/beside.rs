//! What is taken along: files beside a program, and projects; and what is said about what was not.

use std::os::unix::fs::symlink;

use crate::support::{Answer, Hotcell, Running, everyone, has, has_heavy};

fn run_in(hotcell: &Hotcell, folder: &str, words: &[&str]) -> Answer {
    let mut command = hotcell.command();
    command.current_dir(hotcell.place(folder)).args(words);
    Running::start(&mut command).finish()
}

type Files = &'static [(&'static str, &'static str)];

/// A language's runtime, the files of a program in it, the first of which is run, and a word of what is said to be taken.
const PROGRAMS: [(&str, Files, &str); 12] = [
    (
        "python3",
        &[
            (
                "main.py",
                "import os, helper\nfrom shapes.round import area\nprint(helper.name(), area(2))\n",
            ),
            (
                "helper.py",
                "import deeper\ndef name(): return deeper.NAME\n",
            ),
            ("deeper.py", "NAME = 'told'\n"),
            ("shapes/__init__.py", ""),
            (
                "shapes/round.py",
                "from .parts import two\ndef area(x): return two * x\n",
            ),
            ("shapes/parts.py", "two = 2\n"),
        ],
        "`shapes/` (3 files)",
    ),
    (
        "python3",
        &[
            (
                "main.py",
                "import sys; from humanize import name\nif True: import attrs\nimport os, \\\n    six\nprint(name, attrs.ONE + six.ONE + __import__('toml').TWO)\n",
            ),
            ("humanize.py", "name = 'told'\n"),
            ("attrs.py", "ONE = 1\n"),
            ("six.py", "ONE = 1\n"),
            ("toml.py", "TWO = 2\n"),
        ],
        "`attrs.py`, `humanize.py`, `six.py`, `toml.py`",
    ),
    (
        "rustc",
        &[
            (
                "main.rs",
                "mod name; mod four;\nfn main() { println!(\"{} {}\", name::NAME, four::FOUR); }\n",
            ),
            ("name.rs", "pub const NAME: &str = \"told\";\n"),
            ("four.rs", "pub const FOUR: i32 = 4;\n"),
        ],
        "`four.rs`, `name.rs`",
    ),
    (
        "node",
        &[
            (
                "main.js",
                "const { name } = require('./lib/name');\nconsole.log(name, require('./two.json').two * 2);\n",
            ),
            ("lib/name.js", "exports.name = require('../told');\n"),
            ("told.js", "module.exports = 'told';\n"),
            ("two.json", "{\"two\": 2}"),
        ],
        "`two.json`",
    ),
    (
        "node",
        &[
            (
                "main.mjs",
                "import { name } from './name.mjs';\nconsole.log(name, 4);\n",
            ),
            ("name.mjs", "export const name = 'told';\n"),
        ],
        "`name.mjs`",
    ),
    (
        "ruby",
        &[
            (
                "main.rb",
                "require_relative 'lib/name'\nputs \"#{name} 4\"\n",
            ),
            ("lib/name.rb", "require_relative 'told'\ndef name = TOLD\n"),
            ("lib/told.rb", "TOLD = 'told'\n"),
        ],
        "`lib/` (2 files)",
    ),
    (
        "luajit",
        &[
            (
                "main.lua",
                "local lib = require 'lib.name'\nprint(lib.name, 4)\n",
            ),
            ("lib/name.lua", "return { name = 'told' }\n"),
        ],
        "`lib/` (1 file)",
    ),
    (
        "gcc",
        &[
            (
                "main.c",
                "#include <stdio.h>\n#include \"name.h\"\nint main(void) { printf(\"%s %d\\n\", name(), FOUR); }\n",
            ),
            ("name.h", "#define FOUR 4\nconst char *name(void);\n"),
            (
                "name.c",
                "#include \"name.h\"\nconst char *name(void) { return \"told\"; }\n",
            ),
        ],
        "`name.h`",
    ),
    (
        "go",
        &[
            (
                "main.go",
                "package main\n\nimport (\"fmt\"; \"demo/name\") // ours\n\nfunc main() { fmt.Println(name.Name, 4) }\n",
            ),
            ("name/name.go", "package name\n\nconst Name = \"told\"\n"),
            ("go.mod", "module demo\n\ngo 1.18\n"),
        ],
        "`name/` (1 file)",
    ),
    (
        "php",
        &[
            (
                "main.php",
                "<?php\nrequire_once __DIR__ . '/name.php';\necho name(), \" 4\\n\";\n",
            ),
            ("name.php", "<?php\nfunction name() { return 'told'; }\n"),
        ],
        "`name.php`",
    ),
    (
        "bash",
        &[
            ("main.sh", "source ./name.sh\necho \"$name 4\"\n"),
            ("name.sh", "name=told\n"),
        ],
        "`name.sh`",
    ),
    (
        "perl",
        &[
            (
                "main.pl",
                "require './name.pl';\nprint name(), \" 4\\n\";\n",
            ),
            ("name.pl", "sub name { return 'told' }\n1;\n"),
        ],
        "`name.pl`",
    ),
];

fn is_here(runtime: &str) -> bool {
    match runtime {
        "go" | "bun" | "Rscript" | "rustc" | "javac" => has_heavy(runtime),
        "built in" => true,
        _ => has(runtime),
    }
}

#[test]
fn what_a_program_names_beside_it_is_taken_along() {
    for hotcell in everyone() {
        for (number, (runtime, files, said)) in PROGRAMS.iter().enumerate() {
            if !is_here(runtime) {
                continue;
            }
            let folder = format!("home/p{number}");
            for (path, text) in *files {
                hotcell.write(&format!("{folder}/{path}"), text);
            }
            // Nothing that it does not name.
            hotcell.write(&format!("{folder}/other.txt"), "x");
            let file = format!("{}/{}", hotcell.place(&folder).display(), files[0].0);
            // Offline: no registry is asked for a module that is there.
            let answer = run_in(
                &hotcell,
                "home",
                &["run", "--offline", "--timeout", "60", &file],
            );
            let out = answer.out().replace('\t', " ");
            assert_eq!(
                (answer.code, &*out),
                (Some(0), "told 4\n"),
                "{runtime}: {}",
                answer.err()
            );
            assert!(answer.err().contains(said), "{runtime}: {}", answer.err());
            assert_eq!(
                answer.err().lines().count(),
                1,
                "{runtime}: {}",
                answer.err()
            );
            assert!(!answer.err().contains("other.txt"), "{}", answer.err());
        }
    }
}

#[test]
fn what_lies_beside_a_program_without_an_ending_is_taken_along() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        hotcell.write("home/p/tool", "import os, humanize\nprint(humanize.NAME)\n");
        hotcell.write("home/p/humanize.py", "NAME = 'told'\n");
        let answer = run_in(&hotcell, "home", &["run", "--offline", "p/tool"]);
        assert_eq!(answer.out(), "told\n", "{}", answer.err());
    }
}

#[test]
fn nothing_is_taken_from_outside_of_the_programs_folder() {
    for hotcell in everyone() {
        hotcell.write("home/secret.py", "KEY = 'secret'\n");
        hotcell.write("home/p/.env", "KEY=secret\n");
        hotcell.write("home/p/inside/real.py", "KEY = 'fine'\n");
        let program = "for name in ('out', 'up', 'inner'):\n    try: print(name, __import__(name).KEY)\n    except ImportError: print(name, 'no')\n";
        let program = format!("if False:\n    import out, up, inner\n{program}");
        hotcell.write("home/p/main.py", program);
        for (target, link) in [
            ("../secret.py", "out.py"),
            ("..", "up"),
            ("inside/real.py", "inner.py"),
        ] {
            let link = hotcell.place("home/p").join(link);
            symlink(target, link).expect("a link");
        }
        let answer = run_in(&hotcell, "home/p", &["main.py"]);
        assert_eq!(
            answer.out(),
            "out no\nup no\ninner fine\n",
            "{}",
            answer.err()
        );

        assert!(
            answer
                .err()
                .contains("left out what leads out of the folder: `out.py`, `up`"),
            "{}",
            answer.err()
        );
        // Nor are packages of strangers fetched that happen to have such a name.
        assert!(!answer.err().contains("install"), "{}", answer.err());

        let script = "source ./.env 2>/dev/null; source ../secret.py 2>/dev/null; echo \"[$KEY]\"; ls -A | grep -v home\n";
        hotcell.write("home/p/main.sh", script);
        let answer = run_in(&hotcell, "home/p", &["main.sh"]);
        assert_eq!(answer.out(), "[]\nmain.sh\n", "{}", answer.err());
    }
}

#[test]
fn a_folder_of_a_project_is_run() {
    for hotcell in everyone() {
        for (runtime, files, expected) in [
            (
                "python3",
                &[
                    ("main.py", "print(open('data/x.txt').read(), end='')"),
                    ("data/x.txt", "of main\n"),
                ][..],
                "of main\n",
            ),
            (
                "node",
                &[
                    (
                        "package.json",
                        r#"{"name": "x", "scripts": {"start": "node src/start.js"}}"#,
                    ),
                    (
                        "src/start.js",
                        "console.log(require('./name'), process.argv.slice(2).join())",
                    ),
                    ("src/name.js", "module.exports = 'of package.json'"),
                ],
                "of package.json a,b\n",
            ),
            (
                "python3",
                &[
                    (
                        "pyproject.toml",
                        "[project]\nname = \"x\"\n[project.scripts]\nx = \"tool.cli:main\"\n",
                    ),
                    ("src/tool/__init__.py", ""),
                    (
                        "src/tool/cli.py",
                        "import sys\ndef main():\n    print('of pyproject', *sys.argv)\n",
                    ),
                ],
                "of pyproject x a b\n",
            ),
            (
                "go",
                &[
                    ("go.mod", "module demo\n\ngo 1.18\n"),
                    (
                        "start.go",
                        "package main\n\nimport \"demo/name\"\n\nfunc main() { say(name.Name) }\n",
                    ),
                    (
                        "say.go",
                        "package main\n\nimport \"fmt\"\n\nfunc say(x string) { fmt.Println(x) }\n",
                    ),
                    (
                        "name/name.go",
                        "package name\n\nconst Name = \"of go.mod\"\n",
                    ),
                ],
                "of go.mod\n",
            ),
            (
                "javac",
                &[
                    (
                        "Main.java",
                        "public class Main { public static void main(String[] a) { System.out.println(Name.NAME); } }\n",
                    ),
                    (
                        "Name.java",
                        "class Name { static final String NAME = \"of Java\"; }\n",
                    ),
                ],
                "of Java\n",
            ),
            (
                "make",
                &[
                    ("Makefile", "all:\n\t@cat note.txt\n"),
                    ("note.txt", "of make\n"),
                ],
                "of make\n",
            ),
        ] {
            if !is_here(runtime) {
                continue;
            }
            let folder = format!("home/{}", expected.trim().replace([' ', ',', '.'], "-"));
            for (path, text) in files {
                hotcell.write(&format!("{folder}/{path}"), text);
            }
            let folder = hotcell.place(&folder);
            let folder = folder.to_str().expect("text");
            let words: &[&str] = match expected.contains("a,b") || expected.contains("a b") {
                true => &["run", "--offline", "--timeout", "60", folder, "a", "b"],
                false => &["run", "--offline", "--timeout", "60", folder],
            };
            let answer = run_in(&hotcell, "home", words);
            assert_eq!(
                (answer.code, &*answer.out()),
                (Some(0), expected),
                "{}",
                answer.err()
            );
        }
        hotcell.write("home/nothing/notes.txt", "x");
        let answer = run_in(&hotcell, "home", &["run", "nothing"]);
        assert_eq!(answer.code, Some(2));
        assert!(
            answer.err().contains("a folder without a `main` file"),
            "{}",
            answer.err()
        );
    }
}

#[test]
fn a_workspace_is_the_folder_itself_to_read_or_to_write() {
    for hotcell in everyone() {
        hotcell.write("home/w/in.txt", "of the host\n");
        let folder = hotcell.place("home/w").display().to_string();
        let code = "cat /work/in.txt; echo made > /work/out.txt";
        let answer = hotcell.run(&["--workspace", &folder, "-l", "sh", "-c", code]);
        assert_eq!(answer.out(), "of the host\n");
        assert!(!hotcell.place("home/w/out.txt").exists());
        let answer = hotcell.run(&[
            "--workspace",
            &format!("{folder}:rw"),
            "-l",
            "sh",
            "-c",
            code,
        ]);
        assert_eq!(
            (answer.code, answer.out()),
            (Some(0), "of the host\n".to_owned()),
            "{}",
            answer.err()
        );
        let made = std::fs::read_to_string(hotcell.place("home/w/out.txt"));
        assert_eq!(made.expect("a file"), "made\n");
    }
}

#[test]
fn a_file_that_is_on_the_host_alone_is_named() {
    for hotcell in everyone() {
        hotcell.write("home/q/data.csv", "1\n");
        hotcell.write("home/q/read.py", "print(open('data.csv').read())");
        let hint = |answer: Answer| {
            let said = answer.err();
            said.lines()
                .find_map(|line| line.strip_prefix("hint: ").map(str::to_owned))
        };
        let told =
            "`data.csv` is on this machine and not in the sandbox: give it with `--file data.csv`.";
        assert_eq!(
            hint(run_in(&hotcell, "home/q", &["read.py"])).as_deref(),
            Some(told)
        );
        let told = "`q/data.csv` is on this machine and not in the sandbox: give it with `--file q/data.csv:data.csv`.";
        assert_eq!(
            hint(run_in(&hotcell, "home", &["q/read.py"])).as_deref(),
            Some(told)
        );
        // The way that was named works.
        let given = run_in(
            &hotcell,
            "home",
            &["run", "--file", "q/data.csv:data.csv", "q/read.py"],
        );
        assert_eq!(given.out(), "1\n\n");
        // A whole path can only be shown where it is.
        let folder = hotcell.place("home/q").display().to_string();
        let open = |path: &str| format!("print(open('{path}').read())");
        let code = open(&format!("{folder}/data.csv"));
        let mount = format!("--mount={folder}:{folder}:ro");
        let told = format!(
            "`{folder}/data.csv` is on this machine and not in the sandbox: show its folder with `--mount {folder}:{folder}:ro`."
        );
        let words = ["run", "-l", "python", "-c", &code];
        assert_eq!(hint(run_in(&hotcell, "home/q", &words)), Some(told));
        let words = ["run", &mount, "-l", "python", "-c", &code];
        assert_eq!(run_in(&hotcell, "home/q", &words).out(), "1\n\n");
        // Nobody looks at what is neither here nor beside the program.
        let code = open("/srv/nowhere/data.csv");
        let words = ["run", "-l", "python", "-c", &code];
        let told = "`/srv/nowhere/data.csv` is not in the sandbox. If it is on this machine, show its folder with `--mount /srv/nowhere:/srv/nowhere:ro`.";
        assert_eq!(
            hint(run_in(&hotcell, "home", &words)).as_deref(),
            Some(told)
        );
        // One that is nowhere, or that the sandbox would have, is not named.
        for code in [
            "open('none.csv')",
            "open('/etc/hostname.csv')",
            "open('../home/q/data.csv')",
        ] {
            assert_eq!(
                hint(run_in(
                    &hotcell,
                    "home",
                    &["run", "-l", "python", "-c", code]
                )),
                None
            );
        }
    }
}

#[test]
fn hotcell_says_as_much_as_is_wished_and_in_colours_if_they_are() {
    let hotcell = everyone().remove(0);
    let code = "open('left.txt', 'w').write('x')";
    let run = |words: &[&str]| {
        hotcell
            .run(&[words, &["-l", "python", "-c", code]].concat())
            .err()
    };
    assert!(run(&[]).contains("hotcell: left behind: left.txt"));
    assert_eq!(run(&["--quiet"]), "");
    assert_eq!(run(&["-q", "--color", "always"]), "");
    let more = run(&["--verbose"]);
    assert!(
        more.contains("python, run by /") && more.contains("isolation "),
        "{more}"
    );
    assert!(run(&["--color", "always"]).contains("\x1b[2mhotcell:\x1b[0m left behind"));
    // An error is said all the same, and nothing is coloured for a pipe.
    let wrong = hotcell.run(&["--quiet", "-l", "pyton", "-c", code]);
    assert_eq!(
        wrong.err(),
        "hotcell: unknown language `pyton`\nhint: Did you mean `python`?\n"
    );
    // At a terminal it is, unless that is not wished.
    for (variables, colored) in [
        (&[][..], true),
        (&[("NO_COLOR", "1")], false),
        (&[("TERM", "dumb")], false),
    ] {
        let mut terminal =
            crate::repl::Terminal::start(&hotcell, &["run", "-l", "pyton", "-c", "x"], variables);
        terminal.wait_for("unknown language");
        assert_eq!(
            terminal.screen.contains("\x1b[31mhotcell:"),
            colored,
            "{variables:?}"
        );
    }
}

#[test]
fn typescript_in_several_files_runs_whatever_runs_it() {
    for hotcell in everyone() {
        for (path, text) in [
            (
                "main.ts",
                "import { name, type Name } from './name';\nimport { four } from './lib/four.js';\nconst told: Name = name;\nconsole.log(told, four);\n",
            ),
            (
                "name.ts",
                "export type Name = string;\nexport const name: Name = 'told';\n",
            ),
            (
                "lib/four.ts",
                "import { two } from './two.ts';\nimport one from '../one.json' with { type: 'json' };\nexport const four: number = two * 2 * one;\n",
            ),
            (
                "lib/two.ts",
                "import type { Name } from '../name';\nconst unused: Name = 'x';\nexport const two: number = unused.length * 2;\n",
            ),
            ("one.json", "1"),
        ] {
            hotcell.write(&format!("home/ts/{path}"), text);
        }
        for engine in ["node", "embedded", "bun"] {
            if engine != "embedded" && !is_here(engine) {
                continue;
            }
            let answer = run_in(&hotcell, "home/ts", &["run", "--engine", engine, "main.ts"]);
            assert_eq!(
                (answer.code, &*answer.out()),
                (Some(0), "told 4\n"),
                "{engine}: {}",
                answer.err()
            );
            assert_eq!(
                answer.err().lines().count(),
                1,
                "{engine}: {}",
                answer.err()
            );
        }
    }
}

#[test]
fn an_import_of_hotcell_is_ours() {
    for hotcell in everyone() {
        for (language, runtime, code) in [
            (
                "python",
                "python3",
                "from hotcell import args, display, vars\nimport hotcell\nvars['x'] = 1\nprint(args, vars, hotcell.args)\ntry: hotcell.tools.nobody\nexcept AttributeError as error: print(error)",
            ),
            (
                "javascript",
                "node",
                "const { args, vars, tools } = require('hotcell');\nvars.x = 1;\nconsole.log(args, vars, args);\ntry { tools.nobody } catch (error) { console.log(error.message) }",
            ),
            (
                "javascript",
                "node",
                "import { args, vars, tools } from 'hotcell';\nvars.x = 1;\nconsole.log(args, vars, args);\ntry { tools.nobody } catch (error) { console.log(error.message) }",
            ),
            (
                "ruby",
                "ruby",
                "require 'hotcell'\nHotcell.vars['x'] = 1\np Hotcell.args, Hotcell.vars",
            ),
            (
                "lua",
                "built in",
                "local hotcell = require('hotcell')\nhotcell.vars.x = 'x'\nhotcell.display(hotcell.args[1], hotcell.vars.x)",
            ),
            (
                "perl",
                "perl",
                "use hotcell;\n$hotcell::vars{x} = 'x';\nhotcell::display(@hotcell::args, $hotcell::vars{x});",
            ),
            (
                "php",
                "php",
                "<?php require 'hotcell.php';\n\\hotcell\\Vars::$all['x'] = 'x';\n\\hotcell\\display(\\hotcell\\args()[0], \\hotcell\\Vars::$all['x']);",
            ),
            (
                "r",
                "Rscript",
                "source('hotcell.R')\nhotcell$vars$x <- 'x'\nhotcell$display(hotcell$args, hotcell$vars$x)",
            ),
            (
                "bash",
                "bash",
                "source hotcell.sh\nhotcell_display \"$1\" x",
            ),
        ] {
            if !is_here(runtime) {
                continue;
            }
            // With a registry in reach nothing would be fetched either: `packages` of the result are none.
            let result = hotcell.json(&["--timeout", "60", "-l", language, "-c", code, "a"]);
            assert_eq!(result["status"], "ok", "{language}: {result:#}");
            assert!(result.get("packages").is_none(), "{language}: {result:#}");
            assert!(result.get("files").is_none(), "{language}: {result:#}");
            let said = result["stdout"].as_str().expect("text");
            assert!(said.contains("a") && said.contains("x"), "{said}");
            assert!(
                !matches!(language, "python" | "javascript") || said.contains("there is no server"),
                "{said}"
            );
        }
        // A program with one of its own keeps it.
        hotcell.write("home/own/hotcell.py", "name = 'own'\n");
        hotcell.write("home/own/main.py", "import hotcell\nprint(hotcell.name)\n");
        assert_eq!(run_in(&hotcell, "home/own", &["main.py"]).out(), "own\n");
        // A module beside the program may be the one that asks for it.
        hotcell.write("home/two/helper.py", "from hotcell import args\n");
        hotcell.write("home/two/main.py", "import helper\nprint(helper.args)\n");
        let answer = run_in(&hotcell, "home/two", &["main.py", "x"]);
        assert_eq!(answer.out(), "['x']\n", "{}", answer.err());
    }
}
