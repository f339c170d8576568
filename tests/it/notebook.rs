//! Notebooks: their cells are run in one session, and what they came to is written back.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Answer, Hotcell, Running, anyone, everyone, has};

/// A notebook with these cells of code.
fn notebook(language: &str, cells: &[&str]) -> Value {
    let cell = |source: &&str| {
        json!({
            "cell_type": "code",
            "execution_count": 9,
            "metadata": {},
            "outputs": [{ "name": "stdout", "output_type": "stream", "text": ["old\n"] }],
            "source": source.split_inclusive('\n').collect::<Vec<_>>(),
        })
    };
    json!({
        "cells": cells.iter().map(cell).collect::<Vec<_>>(),
        "metadata": { "kernelspec": { "display_name": "X", "language": language, "name": "x" } },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

fn written(hotcell: &Hotcell, notebook: &Value) -> PathBuf {
    hotcell.write("home/report.ipynb", notebook.to_string())
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn run(hotcell: &Hotcell, arguments: &[&str]) -> Answer {
    Running::start(
        hotcell
            .command()
            .args(["run", "report.ipynb"])
            .args(arguments),
    )
    .finish()
}

/// The outputs of a cell, without their metadata.
fn outputs(notebook: &Value, cell: usize) -> Vec<Value> {
    notebook["cells"][cell]["outputs"]
        .as_array()
        .expect("a list")
        .clone()
}

#[test]
fn cells_share_a_session_and_their_outputs_are_written_back() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let path = written(
            &hotcell,
            &notebook(
                "python",
                &[
                    "%matplotlib inline\nimport sys\nx = 20\nprint('a')\nprint('b', file=sys.stderr, flush=True)\n",
                    "def f(y):\n    return {'a': x + y, 'b': True}\nf(1)",
                    "   ",
                    "class P:\n    def _repr_html_(self):\n        return '<b>p</b>'\n    def __repr__(self):\n        return 'P()'\nP()",
                    "display({'k': 1}); display('text')",
                ],
            ),
        );
        let answer = run(&hotcell, &[]);
        assert_eq!(answer.code, Some(0), "{}: {}", hotcell.name, answer.err());
        assert_eq!(answer.out(), "");
        assert!(answer.err().contains("ran 4 cells"), "{}", answer.err());
        let made = read(&path);
        let counts: Vec<&Value> = (0..5)
            .map(|at| &made["cells"][at]["execution_count"])
            .collect();
        assert_eq!(json!(counts), json!([1, 2, null, 3, 4]), "{}", hotcell.name);
        let mut first = outputs(&made, 0);
        first.sort_by_key(ToString::to_string);
        assert_eq!(
            json!(first),
            json!([
                { "name": "stderr", "output_type": "stream", "text": ["b\n"] },
                { "name": "stdout", "output_type": "stream", "text": ["a\n"] },
            ])
        );
        assert_eq!(
            json!(outputs(&made, 1)),
            json!([{
                "data": { "text/plain": ["{'a': 21, 'b': True}"] },
                "execution_count": 2,
                "metadata": {},
                "output_type": "execute_result",
            }])
        );
        assert_eq!(outputs(&made, 2), Vec::<Value>::new());
        assert_eq!(
            outputs(&made, 3)[0]["data"],
            json!({ "text/html": ["<b>p</b>"], "text/plain": ["P()"] })
        );
        let shown = outputs(&made, 4);
        assert_eq!(shown[1]["data"]["text/plain"], json!(["text"]), "{shown:?}");
        assert_eq!(shown[0]["output_type"], "display_data");
    }
}

#[test]
fn a_picture_is_an_output_of_its_cell() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    let code = format!(
        "{}\ndisplay(Picture(3, 2))\nPicture(4, 2)",
        super::display::MAKES_PNG
    );
    let path = written(&hotcell, &notebook("python", &[&code]));
    assert_eq!(run(&hotcell, &[]).code, Some(0));
    let shown = outputs(&read(&path), 0);
    assert_eq!(shown.len(), 2, "{shown:?}");
    for output in shown {
        assert_eq!(output["output_type"], "display_data");
        let png = output["data"]["image/png"].as_str().expect("a picture");
        assert!(png.starts_with("iVBORw0KGgo"), "{png}");
    }
}

#[test]
fn a_cell_that_fails_is_the_last_unless_that_is_wanted() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let cells = [
            "import sys\nprint('w', file=sys.stderr, flush=True)\n1 / 0",
            "print('next')",
        ];
        let mut document = notebook("python", &cells);
        let path = written(&hotcell, &document);
        let answer = run(&hotcell, &[]);
        assert_eq!(answer.code, Some(1), "{}: {}", hotcell.name, answer.err());
        let said = answer.err();
        assert!(
            said.contains("cell 1") && said.contains("ZeroDivisionError: division by zero"),
            "{said}"
        );
        let made = read(&path);
        let failed = outputs(&made, 0);
        assert_eq!(failed[0]["text"], json!(["w\n"]), "{failed:?}");
        let error = &failed[1];
        assert_eq!(
            (&error["output_type"], &error["ename"], &error["evalue"]),
            (
                &json!("error"),
                &json!("ZeroDivisionError"),
                &json!("division by zero")
            )
        );
        let trace = error["traceback"].as_array().expect("lines");
        assert_eq!(trace[0], "Traceback (most recent call last):");
        assert_eq!(failed.len(), 2);
        // What an earlier run left of the other is gone.
        assert_eq!(outputs(&made, 1), Vec::<Value>::new());
        assert_eq!(made["cells"][1]["execution_count"], Value::Null);

        written(&hotcell, &document);
        assert_eq!(run(&hotcell, &["--allow-errors"]).code, Some(0));
        assert_eq!(outputs(&read(&path), 1)[0]["text"], json!(["next\n"]));

        document["cells"][0]["metadata"]["tags"] = json!(["raises-exception"]);
        written(&hotcell, &document);
        assert_eq!(run(&hotcell, &[]).code, Some(0));
        assert_eq!(outputs(&read(&path), 1)[0]["text"], json!(["next\n"]));

        // At its time limit a cell is interrupted; that is never expected.
        written(
            &hotcell,
            &notebook("python", &["print('so far', flush=True)\nwhile True: pass"]),
        );
        let answer = run(&hotcell, &["--timeout", "1", "--allow-errors"]);
        assert_eq!(answer.code, Some(124), "{}", answer.err());
        let ended = outputs(&read(&path), 0);
        assert_eq!(ended[0]["text"], json!(["so far\n"]));
        assert_eq!(ended.last().expect("one")["ename"], "Timeout");
    }
}

#[test]
fn a_magic_that_cannot_be_run_is_named() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    let path = written(&hotcell, &notebook("python", &["%%bash\necho hi"]));
    let answer = run(&hotcell, &[]);
    assert_eq!(answer.code, Some(1), "{}", answer.err());
    assert!(
        answer.err().contains("`%%bash` is for Jupyter alone"),
        "{}",
        answer.err()
    );
    let error = outputs(&read(&path), 0).pop().expect("an output");
    assert_eq!(error["ename"], "SyntaxError");
    // Control: in a text it is one.
    written(&hotcell, &notebook("python", &["'''\n!x\n'''"]));
    assert_eq!(run(&hotcell, &[]).code, Some(0));
}

#[test]
fn other_kernels_run_where_their_language_has_sessions() {
    let Some(hotcell) = anyone() else {
        return;
    };
    for (kernel, program, cells, text) in [
        (
            "javascript",
            "node",
            ["const a = [1, 2]", "a.length + 40"],
            "42",
        ),
        ("typescript", "sh", ["const a: number = 2", "a + 40"], "42"),
        ("bash", "bash", ["a=40", "echo $((a + 2))"], "42\n"),
        ("ruby", "ruby", ["a = 40", "a + 2"], "42"),
    ] {
        if !has(program) {
            continue;
        }
        let path = written(&hotcell, &notebook(kernel, &cells));
        let answer = run(&hotcell, &[]);
        assert_eq!(answer.code, Some(0), "{kernel}: {}", answer.err());
        let output = outputs(&read(&path), 1).pop().expect("an output");
        let found = match output["output_type"].as_str() {
            Some("stream") => &output["text"],
            _ => &output["data"]["text/plain"],
        };
        assert_eq!(found, &json!([text]), "{kernel}: {output}");
    }
    let before = notebook("cobol", &["DISPLAY 1"]);
    let path = written(&hotcell, &before);
    let answer = run(&hotcell, &[]);
    assert_eq!(answer.code, Some(2), "{}", answer.err());
    assert_eq!(
        read(&path),
        before,
        "a notebook that cannot be run is left alone"
    );
}

#[test]
fn a_notebook_goes_where_it_is_wanted_and_nothing_beside_it_is_taken() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    let code = "import os\nprint(sorted(n for n in os.listdir('.') if not n.startswith('.')))\nopen('left.txt', 'w').write('kept')";
    let document = notebook("python", &[code]);
    let path = written(&hotcell, &document);
    let text = fs::read(&path).expect("a file");
    hotcell.write("home/beside.txt", "mine");
    for arguments in [
        &["--out", "-"][..],
        &["--out", "other.ipynb"],
        &["--out", "folder"],
        &["--out", "given", "--file", "beside.txt"],
    ] {
        let answer = run(&hotcell, arguments);
        assert_eq!(answer.code, Some(0), "{}", answer.err());
        assert_eq!(fs::read(&path).expect("a file"), text, "{arguments:?}");
        let made = match arguments[1] {
            "-" => serde_json::from_str(&answer.out()).expect("JSON"),
            "other.ipynb" => read(&hotcell.home().join("other.ipynb")),
            folder => read(&hotcell.home().join(folder).join("report.ipynb")),
        };
        let is_given = arguments.len() > 2;
        let seen = if is_given { "['beside.txt']\n" } else { "[]\n" };
        assert_eq!(outputs(&made, 0)[0]["text"], json!([seen]), "{arguments:?}");
    }
    let left = fs::read_to_string(hotcell.home().join("folder/left.txt"));
    assert_eq!(left.expect("a file"), "kept");
    assert!(!hotcell.home().join("left.txt").exists());
}

#[test]
fn what_is_no_notebook_is_refused_and_left_as_it_was() {
    let Some(hotcell) = anyone() else {
        return;
    };
    for text in [
        "",
        "{",
        "[]",
        "{\"nbformat\": 3, \"cells\": []}",
        "print(1)",
    ] {
        let path = hotcell.write("home/report.ipynb", text);
        let answer = run(&hotcell, &[]);
        assert_eq!(answer.code, Some(2), "{text}: {}", answer.err());
        assert!(
            answer
                .err()
                .starts_with("hotcell: cannot run `report.ipynb`")
        );
        assert_eq!(fs::read_to_string(&path).expect("a file"), text);
    }
}
