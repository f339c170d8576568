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
        ("Math.max(1, 2)", "javascript"),
        ("[1, 2].length", "javascript"),
        ("Object.keys({ a: 1 })", "javascript"),
        ("max(1, 2)", "python"),
    ] {
        assert_eq!(tell(code), Ok(id.to_owned()), "{code}");
    }
}

#[test]
fn what_is_not_clear_is_refused() {
    let candidates = tell("x = 1").unwrap_err();
    assert!(candidates.contains(&"python".to_owned()), "{candidates:?}");
    assert!(candidates.len() > 1, "{candidates:?}");
    assert!(tell("héllo").is_err());
    // A rare language is no answer alone where common ones have the same line.
    let candidates = tell("print \"hi\"").unwrap_err();
    for id in ["basic", "perl", "ruby", "lua"] {
        assert!(candidates.contains(&id.to_owned()), "{candidates:?}");
    }
}

/// Common languages win against rare ones in which a text would be right too.
#[test]
fn common_languages_win_ties() {
    for (code, id) in [
        ("puts \"hi\"", "ruby"),
        ("print(\"hi\")", "python"),
        ("echo hello", "shellscript"),
        ("int main() { return 0; }", "c"),
        ("console.log([1, 2].length)", "javascript"),
    ] {
        assert_eq!(tell(code), Ok(id.to_owned()), "{code}");
    }
}

/// Measured on texts that nothing was made with: neither the model nor a pattern. tests/detection/README.md has the rules.
#[test]
fn short_programs_of_twenty_languages_are_told_apart() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/detection/held");
    let registry = Registry::load(None);
    let (mut all, mut right, mut wrong) = (0, 0, Vec::new());
    let mut languages = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        languages += 1;
        for line in text.lines() {
            let code = line.replace('⏎', "\n");
            all += 1;
            // What is refused is right if the first of what is named is.
            let first = match registry.recognize(None, None, None, code.as_bytes(), |_| true) {
                Ok(chosen) => {
                    let found = chosen.definition.id.as_str();
                    if chosen.is_sure() && found != id {
                        wrong.push(format!("{line} ({id}) as {found}"));
                    }
                    Some(chosen.definition.id.clone())
                }
                Err(LanguageError::Undetected { candidates, .. }) => candidates.first().cloned(),
                Err(error) => panic!("{error}"),
            };
            right += usize::from(first.is_some_and(|it| it.as_str() == id));
        }
    }
    println!("{right} of {all} right, {} wrong when sure", wrong.len());
    assert!(all >= 2000 && languages == 20, "{all} of {languages}");
    assert!(right * 1000 >= all * 970, "{right} of {all}");
    assert!(wrong.len() * 1000 <= all * 5, "{}: {wrong:#?}", wrong.len());
}

#[test]
fn among_several_the_only_one_that_can_run_is_chosen() {
    let registry = Registry::load(None);
    let ruby = |definition: &Definition| definition.id.as_str() == "ruby";
    let chosen = registry
        .recognize(None, None, None, b"puts \"hi\"", ruby)
        .unwrap();
    assert_eq!(chosen.definition.id.as_str(), "ruby");
    assert!(chosen.certainty < 1.0 && chosen.certainty >= LIKELY);
}
