//! Where in a text something stands that looks like personal data. What it is called by is found, not what it means: an order number that looks
//! like the number of a card is taken for one.

use std::ops::Range;

use crate::config::Redaction;

/// Characters before the `@` of an address, and after it.
const LONGEST_LOCAL: usize = 64;
const LONGEST_DOMAIN: usize = 253;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Email,
    Phone,
    Card,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Email, Self::Phone, Self::Card];

    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Card => "card",
        }
    }

    pub fn is_in(self, redaction: Redaction) -> bool {
        match self {
            Self::Email => redaction.email,
            Self::Phone => redaction.phone,
            Self::Card => redaction.card,
        }
    }
}

/// All that is found, from left to right, without overlaps.
pub fn find(text: &str, redaction: Redaction) -> Vec<(Kind, Range<usize>)> {
    let mut found = Vec::new();
    if redaction.email {
        found.extend(emails(text).into_iter().map(|at| (Kind::Email, at)));
    }
    if redaction.phone || redaction.card {
        let mut free = numbers(text, redaction);
        free.retain(|(_, at)| !overlaps(&found, at));
        found.extend(free);
    }
    found.sort_by_key(|(_, at)| at.start);
    found
}

/// Whether a place shares something with one of these, which are in order and apart.
pub fn overlaps(places: &[(Kind, Range<usize>)], at: &Range<usize>) -> bool {
    let first = places.partition_point(|(_, it)| it.end <= at.start);
    places.get(first).is_some_and(|(_, it)| it.start < at.end)
}

fn emails(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let is_local = |it: char| is_letter(it) || "._%+-'".contains(it);
        let is_domain = |it: char| is_letter(it) || ".-".contains(it);
        let free = found.last().map_or(0, |last| last.end);
        let before = text[free..at].chars().rev().take_while(|it| is_local(*it));
        let before: usize = before.take(LONGEST_LOCAL).map(char::len_utf8).sum();
        let after = text[at + 1..].chars().take_while(|it| is_domain(*it));
        let after: usize = after.take(LONGEST_DOMAIN).map(char::len_utf8).sum();
        let local = text[at - before..at].trim_start_matches(['.', '\'', '-']);
        let domain = text[at + 1..at + 1 + after].trim_end_matches(['.', '-']);
        let top = domain.rsplit_once('.').map_or("", |(_, top)| top);
        if !local.is_empty() && top.chars().count() > 1 && top.chars().all(char::is_alphabetic) {
            found.push(at - local.len()..at + 1 + domain.len());
        }
    }
    found
}

/// One that names are written with, in scripts that put spaces between words.
fn is_letter(it: char) -> bool {
    it.is_alphanumeric() && it < '\u{2e80}'
}

/// Digits that stand together.
struct Group {
    at: Range<usize>,
    /// What stands between these and the ones before.
    gap: Range<usize>,
}

fn numbers(text: &str, redaction: Redaction) -> Vec<(Kind, Range<usize>)> {
    let groups = groups(text);
    let mut found = Vec::new();
    let mut first = 0;
    while first < groups.len() {
        let card = || card(text, &groups[first..]).map(|last| (Kind::Card, last));
        let phone = || phone(text, &groups[first..]).map(|last| (Kind::Phone, last));
        let card = redaction.card.then(card).flatten();
        let taken = card.or_else(|| redaction.phone.then(phone).flatten());
        first += match taken {
            None => 1,
            Some((kind, count)) => {
                let Range { mut start, end } = groups[first].at;
                // With what belongs to the number before its first digit.
                let is_open = text[..start].ends_with('(') && text[end..].starts_with(')');
                start -= usize::from(kind == Kind::Phone && is_open);
                start -= usize::from(kind == Kind::Phone && text[..start].ends_with('+'));
                found.push((kind, start..groups[first + count - 1].at.end));
                count
            }
        };
    }
    found
}

fn groups(text: &str) -> Vec<Group> {
    let bytes = text.as_bytes();
    let mut groups: Vec<Group> = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + next;
        let length = bytes[start..].iter().take_while(|it| it.is_ascii_digit());
        let end = start + length.count();
        let gap = groups.last().map_or(start, |last| last.at.end)..start;
        let is_part =
            |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
        // Digits of a word are no number.
        let is_word =
            is_part(text[..start].chars().next_back()) || is_part(text[end..].chars().next());
        let at_range = start..end;
        match is_word {
            true => groups.push(Group { at: end..end, gap }),
            false => groups.push(Group { at: at_range, gap }),
        }
        at = end;
    }
    groups
}

/// How many groups are the number of a card: 13 to 19 digits with a right check digit.
fn card(text: &str, groups: &[Group]) -> Option<usize> {
    let mut digits = String::new();
    let mut longest = None;
    for (index, group) in groups.iter().enumerate() {
        let gap = &text[group.gap.clone()];
        if group.at.is_empty() || (index > 0 && gap != " " && gap != "-") {
            break;
        }
        digits += &text[group.at.clone()];
        if digits.len() > 19 {
            break;
        }
        if digits.len() >= 13 && ('2'..='6').any(|it| digits.starts_with(it)) && is_checked(&digits)
        {
            longest = Some(index + 1);
        }
    }
    longest
}

/// The check of Luhn.
fn is_checked(digits: &str) -> bool {
    let doubled = |(at, digit): (usize, u8)| match (at % 2, u32::from(digit - b'0')) {
        (0, digit) => digit,
        (_, digit) => digit * 2 / 10 + digit * 2 % 10,
    };
    let sum: u32 = digits.bytes().rev().enumerate().map(doubled).sum();
    sum.is_multiple_of(10)
}

/// How many groups are the number of a phone: international, or in one of the usual national ways to write one.
fn phone(text: &str, groups: &[Group]) -> Option<usize> {
    let first = groups.first().filter(|it| !it.at.is_empty())?;
    let start = &text[first.at.clone()];
    let before = &text[..first.at.start];
    let is_joined = |group: &Group| {
        let gap = &text[group.gap.clone()];
        (1..=2).contains(&gap.len()) && gap.bytes().all(|it| b" -./()".contains(&it))
    };
    let joined = groups
        .iter()
        .skip(1)
        .take(6)
        .take_while(|it| !it.at.is_empty() && is_joined(it));
    let lengths: Vec<usize> = [start.len()]
        .into_iter()
        .chain(joined.map(|it| it.at.len()))
        .collect();
    let within = |least: usize, most: usize| {
        let sums = lengths.iter().scan(0, |sum, length| {
            *sum += length;
            Some(*sum)
        });
        let fits = sums.enumerate().take_while(|(_, sum)| *sum <= most);
        fits.last()
            .filter(|(_, sum)| *sum >= least)
            .map(|(index, _)| index + 1)
    };
    let plus = before.strip_suffix('(').unwrap_or(before).strip_suffix('+');
    let is_plus = plus.is_some_and(|it| !it.ends_with(|it: char| it.is_alphanumeric()));
    if is_plus {
        return within(7, 15);
    }
    if start.starts_with("00") {
        return within(9, 17);
    }
    match lengths.as_slice() {
        [3, 3, 4, ..] => Some(3),
        [1, 3, 3, 4, ..] if start == "1" => Some(4),
        [length, ..] if *length > 2 && start.starts_with('0') => {
            within(8, 13).filter(|count| *count > 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let found = find(text, Redaction::ALL).into_iter();
        found.map(|(_, at)| &text[at]).collect()
    }

    #[test]
    fn what_looks_like_personal_data_is_found() {
        for (text, expected) in [
            ("write to ada@example.com.", &["ada@example.com"][..]),
            (
                "<a.b+c@mail.example.co.uk>,jörg@exämple.de",
                &["a.b+c@mail.example.co.uk", "jörg@exämple.de"],
            ),
            ("请联系max@example.com谢谢", &["max@example.com"]),
            (
                "call +49 30 1234567 or +1 (555) 010-9999",
                &["+49 30 1234567", "+1 (555) 010-9999"],
            ),
            ("tel:+4917012345678;", &["+4917012345678"]),
            (
                "(555) 123-4567, 555.123.4567, 1-555-123-4567",
                &["(555) 123-4567", "555.123.4567", "1-555-123-4567"],
            ),
            (
                "030/1234567 and 0049 170 1234567",
                &["030/1234567", "0049 170 1234567"],
            ),
            (
                "4111 1111 1111 1111 and 5500-0000-0000-0004",
                &["4111 1111 1111 1111", "5500-0000-0000-0004"],
            ),
            ("card=378282246310005", &["378282246310005"]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn what_does_not_is_left_alone() {
        for text in [
            "2026-11-17T12:30:00Z 17.11.2026 01-02-2026",
            "192.168.10.100 10.0.0.1:8080 v1.20.300",
            "a@b user@host @name me@ @example.com x@1.2",
            "4111 1111 1111 1112 1234567890123456",
            "id_4111111111111111 x4111111111111111 4111111111111111e",
            "1234567 12 345 678 0.5 1000000000",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn any_text_can_be_looked_at() {
        let parts = [
            "@",
            "a.b",
            "é",
            "+",
            "(",
            "0049",
            "555",
            "-",
            " ",
            "4111111111111111",
            "\u{4e2d}",
            ".",
            "\n",
        ];
        let mut seed = 7_u32;
        for _ in 0..3000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text += parts[(seed >> 16) as usize % parts.len()];
            }
            let mut last = 0;
            for (_, at) in find(&text, Redaction::ALL) {
                assert!(at.start >= last && !text[at.clone()].is_empty(), "{text:?}");
                last = at.end;
            }
        }
    }
}
