//! What a program's comments say of its language: a first line that is nothing but its name, and the lines that are there
//! for Emacs and Vim.

/// In how many lines at the start and at the end of a file Vim looks for its settings.
const LINES: usize = 5;
/// Longer than any name of a language with a word around it.
const LONGEST: usize = 40;

/// The names that a program has for its language, in the order in which they count. Whether one is a language is not known here.
pub fn names(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().copied().filter(|line| !line.trim().is_empty());
    let emacs = first.clone().take(2).find_map(emacs);
    let from_end = lines.len().saturating_sub(LINES);
    let near_ends = lines.iter().take(LINES).chain(&lines[from_end..]);
    let vim = near_ends.copied().find_map(vim);
    let plain = first.clone().next().and_then(plain);
    emacs.into_iter().chain(vim).chain(plain).collect()
}

/// `-*- mode: ruby -*-` or `-*- ruby -*-`.
fn emacs(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("-*-")?;
    let (inside, _) = rest.split_once("-*-")?;
    let mut settings = inside.split(';').filter_map(|it| it.split_once(':'));
    let mode = settings.find(|(name, _)| name.trim().eq_ignore_ascii_case("mode"));
    match mode {
        Some((_, mode)) => name(mode),
        None if inside.contains(':') => None,
        None => name(inside),
    }
}

/// `vim: ft=ruby` or `vim: set filetype=ruby :`.
fn vim(line: &str) -> Option<String> {
    let starts = ["vim:", "vi:", "ex:"].into_iter();
    let (_, rest) = starts.filter_map(|it| line.split_once(it)).next()?;
    let mut settings = rest.split([' ', ':', '\t']);
    let named = settings.find_map(|it| {
        let (key, value) = it.split_once('=')?;
        ["ft", "filetype", "syntax"].contains(&key).then_some(value)
    });
    name(named?)
}

/// `# ruby`, `// language: rust`, `/* C */`.
fn plain(line: &str) -> Option<String> {
    let line = line.trim();
    let marks = ["#", "//", "--", ";", "%", "/*", "(*", "{-", "<!--"];
    let rest = marks.into_iter().find_map(|it| line.strip_prefix(it))?;
    let ends = ["*/", "*)", "-}", "-->"];
    let rest = ends
        .into_iter()
        .find_map(|it| rest.strip_suffix(it))
        .unwrap_or(rest);
    // More of the same mark, as in `;; scheme`. A title of Markdown is no comment.
    let rest = match line.starts_with("##") {
        true => return None,
        false => rest.trim_start_matches(['/', '-', ';', '%', '*', '!']),
    };
    // Prose may begin without a space, a comment of this kind does not.
    let text = rest.strip_prefix([' ', '\t'])?.trim();
    let named = ["language", "lang"].into_iter().find_map(|it| {
        let start = text.get(..it.len())?;
        let rest = text.get(it.len()..)?.trim_start();
        start.eq_ignore_ascii_case(it).then_some(())?;
        rest.strip_prefix([':', '='])
    });
    let text = named.unwrap_or(text).trim();
    let kinds = [" script", " code", " program", " file", " snippet"];
    let bare = kinds.into_iter().find_map(|kind| {
        let at = text.len().checked_sub(kind.len())?;
        let end = text.get(at..)?;
        end.eq_ignore_ascii_case(kind).then_some(&text[..at])
    });
    name(bare.unwrap_or(text))
}

fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_suffix("-mode").unwrap_or(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "+#.-_".contains(c);
    let is_name = !text.is_empty() && text.len() <= LONGEST && text.chars().all(plain);
    is_name.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_is_a_name_and_the_lines_of_editors_are_read() {
        for (text, expected) in [
            ("# ruby\nx = 5\nputs x", "ruby"),
            ("\n// rust\nfn main() {}", "rust"),
            ("-- lua\nprint(1)", "lua"),
            (";; scheme\n(display 1)", "scheme"),
            ("/* C */\nint main;", "c"),
            ("<!-- html -->", "html"),
            ("# Language: Ruby\n1", "ruby"),
            ("# Python script\n1", "python"),
            ("-*- mode: python -*-", "python"),
            ("# -*- ruby -*-\nx", "ruby"),
            ("#!/bin/x\n# -*- coding: utf-8; mode: perl -*-", "perl"),
            ("x = 5\nputs x\n# vim: set ft=ruby ts=2:", "ruby"),
            ("// vim: filetype=go\n", "go"),
        ] {
            assert_eq!(
                names(text).first().map(String::as_str),
                Some(expected),
                "{text}"
            );
        }
        for text in [
            "# ruby is nice\nprint(1)",
            "## python\n",
            "#include <stdio.h>",
            "#ruby",
            "x = 1 # ruby",
            "# -*- coding: utf-8 -*-\nprint(1)",
            "",
            "print('vim: no')",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }
}
