//! What somebody may have meant who misspelled a name.

use std::cmp::Reverse;

use super::{CallError, Tool};

/// Longer names are not compared.
const LONGEST: usize = 64;
/// More names are not looked at.
const MOST: usize = 2000;

/// The name that differs least from `asked`, if it differs little.
pub fn nearest<'a>(names: impl Iterator<Item = &'a str>, asked: &str) -> Option<&'a str> {
    let near = |name: &'a str| Some((distance(name, asked)?, name));
    let found = names.take(MOST).filter_map(near).min_by_key(|it| it.0);
    found.map(|(_, name)| name)
}

/// The tool that a program means: its own name, or one that only differs in how it is written.
pub fn find<'a>(tools: &'a [Tool], asked: &str) -> Result<&'a Tool, CallError> {
    // SECURITY: what no program would write is nobody's name.
    let is_written = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '/' | ' ');
    let is_name = asked.chars().all(is_written);
    let same = |tool: &&Tool| tool.name == asked;
    let alike = |tool: &&Tool| is_name && plain(&tool.name) == plain(asked);
    let found = tools.iter().find(same).or_else(|| tools.iter().find(alike));
    found.ok_or_else(|| {
        let names = tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut names = nearest_first(names, asked);
        names.truncate(8);
        CallError::UnknownTool(names.join(", "))
    })
}

/// Names in the order in which they are likely to be meant.
pub fn nearest_first<'a>(mut names: Vec<&'a str>, asked: &str) -> Vec<&'a str> {
    let asked_plain = plain(asked);
    let shared = |name: &str| {
        let name = plain(name);
        let pairs = name.chars().zip(asked_plain.chars());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let is_short = names.len() <= MOST;
    let near = |name: &str| distance(name, asked).filter(|_| is_short);
    let key = |name: &&str| (near(name).unwrap_or(usize::MAX), Reverse(shared(name)));
    names.sort_by_cached_key(key);
    names
}

/// The letters of a name, however it is written.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|it| it.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// How many letters must be changed to make one of the other; none if they are too many.
fn distance(one: &str, other: &str) -> Option<usize> {
    let one: Vec<char> = one
        .chars()
        .flat_map(char::to_lowercase)
        .take(LONGEST + 1)
        .collect();
    let other: Vec<char> = other
        .chars()
        .flat_map(char::to_lowercase)
        .take(LONGEST + 1)
        .collect();
    if one.len() > LONGEST || other.len() > LONGEST {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for (column, with) in other.iter().enumerate() {
            let changed = before + usize::from(letter != with);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    let distance = row[other.len()];
    let most = other.len().div_ceil(3).clamp(1, 3);
    (distance <= most).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slip_is_found_and_another_name_is_not() {
        let names = ["create_issue", "title", "list_issues", "id"];
        for (asked, meant) in [
            ("titel", Some("title")),
            ("creat_isue", Some("create_issue")),
            ("List_Issue", Some("list_issues")),
            ("it", Some("id")),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(nearest(names.into_iter(), asked), meant, "{asked}");
        }
        assert_eq!(nearest(names.into_iter(), &"x".repeat(1_000_000)), None);
    }
}
