use super::*;

fn tell(code: &str) -> Result<String, Vec<String>> {
    let registry = Registry::load(None);
    match registry.recognize(None, None, None, code.as_bytes(), |_| true) {
        Ok(chosen) => Ok(chosen.definition.id.to_string()),
        Err(LanguageError::Undetected { candidates, .. }) => {
            Err(candidates.iter().map(ToString::to_string).collect())
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_fence_around_everything_is_taken_off() {
    assert_eq!(
        unfence(b"```lua\nprint(1)\n```"),
        Some(("lua", "print(1)\n"))
    );
    assert_eq!(
        unfence(b"\n~~~ python title=x\nx\n~~~\n"),
        Some(("python", "x\n"))
    );
    assert_eq!(unfence(b"```{.ruby}\nx\n```"), Some(("ruby", "x\n")));
    assert_eq!(unfence(b"```\nx\n```"), Some(("", "x\n")));
    for other in [
        "```",
        "```x```",
        "a\n```\nb\n```",
        "```a\nx\n```\n```b\ny\n```",
        "```a\nx",
    ] {
        assert_eq!(unfence(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn what_is_clear_is_told_by_its_looks() {
    for (code, id) in [
        ("<?php", "php"),
        ("package main", "go"),
        ("#include <stdio.h>", "c"),
        ("fn main() {", "rust"),
        ("console.log(1)", "javascript"),
        ("print(1)", "python"),
        ("SELECT 1;", "sql"),
        ("def f(x):\n    return x\n", "python"),
        ("digraph { a -> b }", "dot"),
        ("import os; print(os.getcwd())", "python"),
        ("import math; print(math.pi)", "python"),
        ("puts [1,2].sum", "ruby"),
        ("ls -la && pwd", "shellscript"),
        ("git log --oneline | head -5", "shellscript"),
        ("print(string.upper('abc'))", "lua"),
        ("$x = 5;\necho $x * 2;", "php"),
    ] {
        assert_eq!(tell(code), Ok(id.to_owned()), "{code}");
    }
}

#[test]
fn what_is_not_clear_is_refused() {
    let candidates = tell("x = 1").unwrap_err();
    assert_eq!(
        candidates,
        ["javascript", "lua", "octave", "python", "ruby"]
    );
    assert_eq!(tell("héllo"), Err(Vec::new()));
    let candidates = tell("puts \"hi\"").unwrap_err();
    assert!(candidates.contains(&"ruby".to_owned()), "{candidates:?}");
    assert!(candidates.contains(&"crystal".to_owned()), "{candidates:?}");
}

#[test]
fn among_several_the_only_one_that_can_run_is_chosen() {
    let registry = Registry::load(None);
    let ruby = |definition: &Definition| definition.id.as_str() == "ruby";
    let chosen = registry
        .recognize(None, None, None, b"puts \"hi\"", ruby)
        .unwrap();
    assert_eq!(chosen.definition.id.as_str(), "ruby");
    assert!(chosen.certainty < 1.0 && chosen.certainty >= SURE);
}
