//! What a program looks like, as a set of numbers: its words, its punctuation and how they follow each other.
//!
//! A number is the hash of a feature. What a model knows nothing of says nothing.

use super::tokens::{Token, tokens};

/// The features of a text, each once.
pub fn features(text: &str) -> Vec<u32> {
    let tokens = tokens(text);
    let mut found = Vec::with_capacity(tokens.len() * 8);
    let none = Token::edge();
    let at = |index: usize| tokens.get(index).unwrap_or(&none);
    for (index, token) in tokens.iter().enumerate() {
        let (second, third) = (at(index + 1), at(index + 2));
        let fourth = at(index + 3);
        found.push(hash(1, &[token.text]));
        if token.is_inside {
            continue;
        }
        if let Some(end) = last_part(token.text) {
            found.push(hash(11, &[end, second.shape]));
        }
        found.push(hash(2, &[token.text, second.text]));
        found.push(hash(3, &[token.text, second.shape]));
        found.push(hash(4, &[token.shape, second.text]));
        found.push(hash(5, &[token.shape, second.shape, third.shape]));
        found.push(hash(6, &[token.text, second.shape, third.shape]));
        found.push(hash(7, &[token.shape, second.text, third.shape]));
        found.push(hash(
            8,
            &[token.shape, second.shape, third.shape, fourth.shape],
        ));
    }
    // How it begins and how it ends, more exactly.
    let last = tokens.len().saturating_sub(3);
    found.push(hash(
        9,
        &[at(0).shape, at(1).shape, at(2).shape, at(3).shape],
    ));
    found.push(hash(
        10,
        &[at(last).shape, at(last + 1).shape, at(last + 2).shape],
    ));
    found.sort_unstable();
    found.dedup();
    found
}

/// The feature of a word alone.
#[allow(dead_code, reason = "training begins with words")]
pub fn word(text: &str) -> u32 {
    hash(1, &[text])
}

/// `Exception` of `ParseException`.
fn last_part(word: &str) -> Option<&str> {
    let at = word.rfind(char::is_uppercase)?;
    (at > 0 && word.len() > at + 2).then(|| &word[at..])
}

/// FNV-1a over a kind and its parts.
fn hash(kind: u8, parts: &[&str]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut add = |byte: u8| hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    add(kind);
    for part in parts {
        part.bytes().for_each(&mut add);
        add(0);
    }
    // The kind is kept, so that training can tell words from the rest.
    (hash & !15) | u32::from(kind)
}
