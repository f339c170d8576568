use serde_json::json;

use super::*;

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "a",
   "metadata": {},
   "source": [
    "# T\u00eftle"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "b",
   "metadata": {"tags": ["x", "raises-exception"]},
   "outputs": [],
   "source": [
    "x = 1\n",
    "x"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "metadata": {},
   "outputs": [],
   "source": "  "
  }
 ],
 "metadata": {
  "kernelspec": {"display_name": "P", "language": "python", "name": "python3"},
  "z": 1.50e3, "a": 12345678901234567890123
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

#[test]
fn what_is_not_changed_is_written_as_it_was() {
    let mut document = Document::parse(NOTEBOOK).unwrap();
    assert_eq!(document.languages(), ["python", "python3"]);
    let code: Vec<Option<String>> = document.cells().iter().map(Cell::code).collect();
    assert_eq!(code, [None, Some("x = 1\nx".to_owned()), None]);
    assert!(document.cells()[1].may_fail() && !document.cells()[2].may_fail());
    assert_eq!(
        String::from_utf8(document.write().unwrap()).unwrap(),
        NOTEBOOK
    );
    document.cells()[0].set(Some(1), vec![json!(1)]);
    document.cells()[1].set(Some(1), vec![json!({ "a": ["b\n"] })]);
    let changed = NOTEBOOK
        .replace("\"execution_count\": 7", "\"execution_count\": 1")
        .replacen(
            "\"outputs\": []",
            "\"outputs\": [\n    {\n     \"a\": [\n      \"b\\n\"\n     ]\n    }\n   ]",
            1,
        );
    assert_eq!(
        String::from_utf8(document.write().unwrap()).unwrap(),
        changed
    );
}

#[test]
fn other_layouts_are_kept_too() {
    for text in [
        r#"{"cells":[{"cell_type":"code","source":"1","outputs":[]}],"nbformat":4}"#,
        "{\n\t\"cells\": [],\n\t\"nbformat\": 4\n}",
        "{\n    \"nbformat\": 4,\n    \"cells\": []\n}\n",
    ] {
        let document = Document::parse(text).unwrap();
        assert_eq!(String::from_utf8(document.write().unwrap()).unwrap(), text);
    }
}

#[test]
fn what_is_no_notebook_is_refused_and_never_breaks_us() {
    let deep = format!(
        r#"{{"nbformat":4,"cells":[],"metadata":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let document = Document::parse(&deep);
    assert!(document.is_err() || document.unwrap().languages().is_empty());
    let many = format!(
        r#"{{"nbformat":4,"cells":[{}{{}}]}}"#,
        "{},".repeat(MOST_CELLS)
    );
    for text in [
        "",
        "{",
        "[]",
        "1",
        "{}",
        r#"{"nbformat":4}"#,
        r#"{"nbformat":3,"cells":[]}"#,
        r#"{"nbformat":"4","cells":[]}"#,
        r#"{"nbformat":4,"cells":{}}"#,
        r#"{"nbformat":4,"cells":[1]}"#,
        &many,
    ] {
        assert!(Document::parse(text).is_err(), "{text:.60}");
    }
    // Odd cells are no programs.
    let odd = r#"{"nbformat":4,"cells":[{},{"cell_type":1},{"cell_type":"code"},{"cell_type":"code","source":{}},{"cell_type":"code","source":[1,"a"]}]}"#;
    let mut document = Document::parse(odd).unwrap();
    let code: Vec<Option<String>> = document.cells().iter().map(Cell::code).collect();
    assert_eq!(code, [None, None, None, None, Some("a".to_owned())]);
}
