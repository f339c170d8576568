//! Values of programs in other languages than Python and JavaScript.

use serde_json::{Value, json};

use super::run;
use crate::raw;
use crate::support::{anyone, has, has_heavy};

/// Programs with what they print and their value.
fn expect(language: &str, programs: &[(&str, &str, Value)]) {
    let mut client = raw::Stdio::open(&[]);
    for (code, printed, value) in programs {
        let result = run(&mut client, language, code);
        let facts = &result["structuredContent"];
        assert_eq!(facts["stdout"], *printed, "{code}: {result}");
        assert_eq!(facts["value"], *value, "{code}: {result}");
    }
}

#[test]
fn values_of_ruby_come_as_json_or_as_inspect_has_them() {
    if anyone().is_none() || !has("ruby") {
        return;
    }
    expect(
        "ruby",
        &[
            ("puts 'a'\n6 * 7", "a\n", json!(42)),
            (
                "{ a: [1, nil, 2.5, true], 'b' => \"é\\\"\\n\" }",
                "",
                json!({ "a": [1, null, 2.5, true], "b": "é\"\n" }),
            ),
            ("(1..3)", "", json!("1..3")),
            ("Float::NAN", "", json!("NaN")),
            ("x = 5", "", Value::Null),
            ("nil", "", Value::Null),
            (
                "[__FILE__, $0, ARGV]",
                "",
                json!(["main.rb", "main.rb", []]),
            ),
            ("at_exit { puts 'bye' }\n[1]", "bye\n", json!([1])),
            ("def f(x)\n  x + 1\nend\nf(1)", "", json!(2)),
        ],
    );
}

#[test]
fn a_program_of_ruby_that_fails_says_so_as_ever() {
    if anyone().is_none() || !has("ruby") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let result = run(&mut client, "ruby", "def f\n  raise 'boom'\nend\nf.size");
    let facts = &result["structuredContent"];
    let expected = "main.rb:2:in `f': boom (RuntimeError)\n\tfrom main.rb:4:in `<main>'\n";
    // Newer ones name the class and quote otherwise.
    let said = facts["stderr"]
        .as_str()
        .unwrap()
        .replace("'Object#f'", "`f'");
    assert_eq!(said.replace("'<main>'", "`<main>'"), expected, "{result}");
    assert_eq!(
        (&facts["exit_code"], &facts["value"]),
        (&json!(1), &Value::Null)
    );
    let result = run(&mut client, "ruby", "exit 3\n5");
    assert_eq!(result["structuredContent"]["exit_code"], 3, "{result}");
}

#[test]
fn values_of_r_that_are_json_come_beside_what_it_prints() {
    if anyone().is_none() || !has_heavy("Rscript") {
        return;
    }
    expect(
        "r",
        &[
            ("x <- 6 * 7\nx", "[1] 42\n", json!(42)),
            ("list(a = 1:2, b = 'é')$a", "[1] 1 2\n", json!([1, 2])),
            ("c(a = TRUE)", "   a \nTRUE \n", json!({ "a": true })),
            ("data.frame(n = 1)", "  n\n1 1\n", Value::Null),
            ("invisible(5)", "", Value::Null),
            ("x <- 5", "", Value::Null),
            ("c(1, NA)", "[1]  1 NA\n", Value::Null),
            ("ls()", "character(0)\n", json!([])),
        ],
    );
    let mut client = raw::Stdio::open(&[]);
    let result = run(&mut client, "r", "1\nstop('boom')\n2");
    let facts = &result["structuredContent"];
    assert_eq!(
        (&facts["exit_code"], &facts["value"]),
        (&json!(1), &Value::Null)
    );
    assert!(
        facts["stderr"].as_str().unwrap().contains("boom"),
        "{result}"
    );
}
