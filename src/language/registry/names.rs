//! How languages are named in `#!` lines and by slips of the hand.

use std::path::Path;

use crate::request::unmarked;

/// The interpreter's plain name in `#!/usr/bin/env -S NAME=value python3 -u` and the like.
pub fn interpreter(code: &[u8]) -> Option<&str> {
    let code = unmarked(code);
    let line = code
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let name = |word| Path::new(word).file_name()?.to_str();
    match name(words.next()?)? {
        "env" => name(words.find(|word| !word.starts_with('-') && !word.contains('='))?),
        name => Some(name),
    }
}

/// How far apart two names are, or none if they are not alike.
pub fn closeness(asked: &str, known: &str) -> Option<usize> {
    let distance = edits(asked, known);
    let alike = distance <= known.len().max(asked.len()) / 3;
    let begun = asked.len() >= 2 && known.starts_with(asked);
    (alike || begun).then_some(distance)
}

/// Insertions, deletions, replacements and swaps of neighbours between two names.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // A name is at most 24 bytes; a longer one is not a slip of the hand.
    if a.len().max(b.len()) > 32 {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
