use std::path::Path;

use super::*;
use crate::language::{Definition, Registry};

fn failure(language: &str) -> Failure {
    let registry = Registry::load(None);
    let definition = registry.find(language).unwrap();
    definition.failure.for_file(definition.source.file.as_str())
}

fn syntax(words: &str, line: u32) -> Diagnosis {
    Diagnosis {
        advice: None,
        cause: Cause::Syntax {
            words: words.to_owned(),
        },
        file: None,
        line: Some(line),
    }
}

fn missing(module: &str) -> Cause {
    Cause::MissingModule {
        module: module.to_owned(),
    }
}

#[test]
fn only_the_start_of_a_line_counts_as_out_of_memory() {
    let python = failure("python");
    assert!(python.ran_out_of_memory(b"Traceback:\n  x\nMemoryError: no\n"));
    assert!(!python.ran_out_of_memory(b"ValueError: MemoryError\n  MemoryError\n"));
    assert!(!Failure::default().ran_out_of_memory(b"\n"));
}

#[test]
fn python_says_what_is_wrong_in_its_last_line_and_where_above_it() {
    let python = failure("python");
    let own = "  File \"/workspace/main.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
    let found = python.diagnose(own.as_bytes());
    assert_eq!(
        found,
        Diagnosis {
            file: Some("main.py".to_owned()),
            ..syntax("SyntaxError: invalid syntax", 3)
        }
    );

    // It was running: what did not parse is something that it made itself.
    let evaluated = "Traceback (most recent call last):\n  File \"/workspace/main.py\", line 7, in <module>\n    eval(\"1+\")\n  File \"<string>\", line 1\n    1+\nSyntaxError: invalid syntax\n";
    let found = python.diagnose(evaluated.as_bytes());
    assert_eq!(found.cause, Cause::Unknown);
    assert_eq!(found.line, Some(7));

    let import = "Traceback (most recent call last):\n  File \"/workspace/main.py\", line 1, in <module>\n  File \"/workspace/lib/deep.py\", line 4, in <module>\n    import no_such.part\nModuleNotFoundError: No module named 'no_such.part'; 'no_such' is not a package\n";
    let found = python.diagnose(import.as_bytes());
    assert_eq!(found.cause, missing("no_such.part"));
    assert_eq!(
        (found.file.as_deref(), found.line),
        (Some("lib/deep.py"), Some(4))
    );

    let other = "ModuleNotFoundError: No module named 'x'\n\nDuring handling of the above exception, another exception occurred:\n\nValueError: y\n";
    assert_eq!(python.diagnose(other.as_bytes()).cause, Cause::Unknown);

    let input = "Traceback (most recent call last):\n  File \"/workspace/main.py\", line 1, in <module>\nEOFError: EOF when reading a line\n";
    assert_eq!(python.diagnose(input.as_bytes()).cause, Cause::NoInput);
}

#[test]
fn node_says_it_amid_its_calls() {
    let node = failure("javascript");
    let stack = "    at wrapSafe (node:internal/modules/cjs/loader:1464:18)\n\nNode.js v20.20.2\n";
    let own = format!(
        "/workspace/main.js:2\nlet y=;\n      ^\n\nSyntaxError: Unexpected token ';'\n{stack}"
    );
    let found = node.diagnose(own.as_bytes());
    assert_eq!(found, syntax("SyntaxError: Unexpected token ';'", 2));
    let found = node.diagnose(format!("file://{own}").as_bytes());
    assert_eq!(found, syntax("SyntaxError: Unexpected token ';'", 2));

    let parsed = format!(
        "<anonymous_script>:1\n{{bad\n ^\n\nSyntaxError: Expected property name\n    at JSON.parse (<anonymous>)\n    at Object.<anonymous> (/workspace/main.js:5:6)\n{stack}"
    );
    let found = node.diagnose(parsed.as_bytes());
    assert_eq!(found.cause, Cause::Unknown);
    assert_eq!(found.line, Some(5));

    for words in [
        "Error: Cannot find module 'no_such'\nRequire stack:\n- /workspace/main.js\n",
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'no_such' imported from /workspace/main.js\n",
    ] {
        let found = node.diagnose(format!("{words}{stack}").as_bytes());
        assert_eq!(found.cause, missing("no_such"), "{words}");
    }
}

#[test]
fn a_shell_names_the_line_itself() {
    let shell = failure("shellscript");
    let found = shell.diagnose(
        b"main.sh: line 2: syntax error near unexpected token `('\nmain.sh: line 2: `def f(:'\n",
    );
    assert_eq!(
        found,
        syntax("main.sh: line 2: syntax error near unexpected token `('", 2)
    );
    let found = shell.diagnose(b"main.sh: 1: Syntax error: \"(\" unexpected\n");
    assert_eq!(found.line, Some(1));
    assert!(matches!(found.cause, Cause::Syntax { .. }));
    let found = shell.diagnose(b"main.sh: line 4: jq: command not found\n");
    assert_eq!((found.cause, found.line), (missing("jq"), Some(4)));
    let found = shell.diagnose(b"main.sh: eval: line 2: syntax error: unexpected end of file\n");
    assert_eq!(found.cause, Cause::Unknown);
}

#[test]
fn hostile_words_are_read_without_harm_and_quoted_briefly() {
    let text = r#"
        name = "Any"
        runtime.commands = ["any"]
        source.file = "main"
        run.argv = ["{runtime}", "{file}"]
        failure.syntax = ["{any}bad at {line}: {module}"]
        failure.missing = ["no {path}:{module}!"]
    "#;
    let any = Definition::parse("any", text, Path::new("any.toml")).unwrap();
    let failure = any.failure.for_file("main");
    for line in [
        "bad at ",
        "bad at 99999999999999999999: x",
        "bad at -1: x",
        "no :x!",
        "no x:!",
        "\u{fffd}",
    ] {
        assert_eq!(failure.diagnose(line.as_bytes()), Diagnosis::default());
    }
    let long = format!("no {}:{}!", "é".repeat(500), "x".repeat(100_000));
    let found = failure.diagnose(long.as_bytes());
    assert_eq!(found, Diagnosis::default(), "its start is not looked at");
    let long = format!("no é:{}!", "x".repeat(10_000));
    let Cause::MissingModule { module } = failure.diagnose(long.as_bytes()).cause else {
        panic!("{long}");
    };
    assert_eq!(module.len(), 200);
}

#[test]
fn what_only_a_parser_says_is_syntax_though_a_place_follows_it() {
    let typescript = failure("typescript");
    let broken = "error: SyntaxError: Expression expected\n  |\n3 | let x = ;\n  |         ~\n    at file:///workspace/main.ts:3:9\n\nStack backtrace:\n   0: <unknown>\n";
    let words = "error: SyntaxError: Expression expected";
    assert_eq!(typescript.diagnose(broken.as_bytes()), syntax(words, 3));

    // Control: the same place, and a program that was running.
    let thrown = "error: Uncaught (in promise) SyntaxError: Unexpected token ';'\neval(\"let y = ;\")\n^\n    at file:///workspace/main.ts:3:1\n";
    let found = typescript.diagnose(thrown.as_bytes());
    assert_eq!((found.cause, found.line), (Cause::Unknown, Some(3)));

    let import =
        "error: Import \"lodash\" not a dependency\n    at file:///workspace/main.ts:1:15\n";
    assert_eq!(
        typescript.diagnose(import.as_bytes()).cause,
        missing("lodash")
    );
}

#[test]
fn what_has_a_remedy_of_its_own_is_told_with_it() {
    let node = failure("javascript");
    let line = "Error [ERR_UNSUPPORTED_ESM_URL_SCHEME]: Only URLs with a scheme in: file, data, and node are supported by the default ESM loader. Received protocol 'jsr:'";
    let found = node.diagnose(format!("node:internal/load:241\n{line}\n    at x\n").as_bytes());
    assert_eq!(found.cause, missing("jsr:"));
    let advice = found.advice.expect("advice");
    assert!(
        advice.contains("`hotcell languages add typescript`"),
        "{advice}"
    );
    assert_eq!(node.diagnose(b"Error: x\n").advice, None);
}
