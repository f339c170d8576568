//! Words of a text, as far as they are told apart.

use super::synonyms::{is_filler, meaning};

/// The words of a text in the form in which they are compared: without endings, and without the words that every text has.
///
/// `getUserID` is three words, and so is `get_user_id`. Chinese and Japanese have no spaces: there each pair of characters is one, and
/// what a common one means follows it.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in split(text) {
        if word.chars().any(is_ideograph) {
            let characters: Vec<char> = word.chars().collect();
            if let [one] = characters.as_slice() {
                words.push(one.to_string());
            }
            for pair in characters.windows(2) {
                let pair: String = pair.iter().collect();
                words.extend(meaning(&pair).map(stem));
                words.push(pair);
            }
        } else if !is_filler(&word) {
            words.push(stem(&word));
        }
    }
    words
}

/// Runs of letters, of digits and of ideographs, in lower case.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = Kind::Other;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let kind = Kind::of(character);
        let next = rest.peek().map(|it| Kind::of(*it));
        let is_new = match (before, kind) {
            // `getUser`, `sha256Sum`; the last capital of several begins the next word: `HTMLPage`.
            (Kind::Lower | Kind::Digit, Kind::Upper) => true,
            (Kind::Upper, Kind::Upper) => next == Some(Kind::Lower),
            (Kind::Upper, Kind::Lower) => false,
            (before, kind) => before != kind,
        };
        if kind != Kind::Other {
            if is_new {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(character.to_lowercase());
            }
        }
        before = kind;
    }
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Ideograph,
    Other,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            _ if is_ideograph(character) => Self::Ideograph,
            _ if character.is_uppercase() => Self::Upper,
            _ if character.is_alphabetic() => Self::Lower,
            _ if character.is_numeric() => Self::Digit,
            _ => Self::Other,
        }
    }
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')
}

/// What goes with the end of a word, the longest first.
const ENDINGS: [&str; 18] = [
    "ization", "isation", "ational", "ation", "ition", "ator", "ments", "ment", "ingly", "ing",
    "edly", "ed", "ers", "er", "or", "ive", "ly", "ion",
];

/// A word without its ending: `generating`, `generates` and `generation` are one.
pub fn stem(word: &str) -> String {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if word.len() <= 3 || !is_plain {
        return word.to_owned();
    }
    let mut stem = singular(word);
    let long_enough = |start: &str| start.len() >= 3 && start.contains(is_vowel);
    let shorter = ENDINGS.iter().find_map(|ending| {
        let start = stem.strip_suffix(ending)?;
        long_enough(start).then_some(start.len())
    });
    if let Some(length) = shorter {
        stem.truncate(length);
        // `running`, but not `selling`.
        let last = stem.as_bytes();
        if let [.., a, b] = last
            && a == b
            && stem.len() > 3
            && !b"lsz".contains(b)
        {
            stem.pop();
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    if stem.len() > 3 && stem.ends_with('y') {
        stem.pop();
        stem.push('i');
    }
    stem
}

fn singular(word: &str) -> String {
    let without = |count: usize| word[..word.len() - count].to_owned();
    match word {
        _ if word.ends_with("ies") && word.len() > 4 => without(3) + "y",
        _ if ["sses", "shes", "ches", "xes"]
            .iter()
            .any(|end| word.ends_with(end)) =>
        {
            without(2)
        }
        _ if ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => word.to_owned(),
        _ if word.ends_with('s') => without(1),
        _ => word.to_owned(),
    }
}

fn is_vowel(letter: char) -> bool {
    "aeiouy".contains(letter)
}

/// Whether a word that occurs nowhere may be another that does: one begins with the other, or they differ by one slip.
pub fn is_near(word: &str, other: &str) -> bool {
    let is_long = word.len().min(other.len()) >= 4 && word.is_ascii() && other.is_ascii();
    is_long && (other.starts_with(word) || word.starts_with(other) || is_one_slip(word, other))
}

/// One letter more, one less, one changed, or two that have changed places.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (short, long) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        1 => short[same..] == long[same + 1..],
        0 if same == short.len() => false,
        0 => {
            let (short, long) = (&short[same..], &long[same..]);
            let swapped = short.len() > 1
                && short[0] == long[1]
                && short[1] == long[0]
                && short[2..] == long[2..];
            swapped || short[1..] == long[1..]
        }
        _ => false,
    }
}
