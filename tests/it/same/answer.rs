//! What a program said and how it ended, and the difference between two of those.

/// As far as a caller can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// None if a signal ended it.
    pub code: Option<i64>,
    /// The kernel's name of it.
    pub signal: Option<String>,
    pub stdout: String,
    pub stderr: String,
}

/// How many lines are shown from the first that differs.
const SHOWN: usize = 6;

/// What differs, short enough to read a hundred of them.
pub fn difference(expected: &Answer, found: &Answer) -> Option<String> {
    let mut told = String::new();
    let end = |answer: &Answer| format!("{:?} {:?}", answer.code, answer.signal);
    if end(expected) != end(found) {
        told += &format!("end: -{} +{}\n", end(expected), end(found));
    }
    for (stream, expected, found) in [
        ("stdout", &expected.stdout, &found.stdout),
        ("stderr", &expected.stderr, &found.stderr),
    ] {
        let (expected, found) = (without_addresses(expected), without_addresses(found));
        if expected != found {
            told += &format!("{stream}:\n{}", lines(&expected, &found));
        }
    }
    (!told.is_empty()).then_some(told)
}

/// The lines from the first difference to the last, `-` expected and `+` found.
fn lines(expected: &str, found: &str) -> String {
    // Ends kept: a missing last newline is a difference too.
    let expected: Vec<&str> = expected.split_inclusive('\n').collect();
    let found: Vec<&str> = found.split_inclusive('\n').collect();
    let same = expected
        .iter()
        .zip(&found)
        .take_while(|(a, b)| a == b)
        .count();
    let mut told = format!("  (after {same} lines that are the same)\n");
    for (sign, lines) in [('-', &expected[same..]), ('+', &found[same..])] {
        for line in lines.iter().take(SHOWN) {
            let line: String = line.chars().take(200).collect();
            // Escaped, so that what cannot be seen can be.
            told += &format!("  {sign}{}\n", line.escape_debug());
        }
    }
    told
}

/// Addresses are random by design, and tracebacks show them.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        // Shorter ones are numbers of the program's own.
        if digits >= 9 {
            plain += "0x_";
            plain += &part[digits..];
        } else {
            plain += "0x";
            plain += part;
        }
    }
    plain
}

#[test]
fn only_addresses_are_passed_over() {
    let answer = |stdout: &str| Answer {
        code: Some(0),
        signal: None,
        stdout: stdout.to_owned(),
        stderr: String::new(),
    };
    let same = |a: &str, b: &str| difference(&answer(a), &answer(b)).is_none();
    assert!(same("<f at 0x7f0123456789>", "<f at 0x55d3aabbccdd>"));
    assert!(!same("0xff", "0xfe"));
    assert!(!same("a\n", "a"));
    assert!(!same("a\nb\n", "a\nc\n"));
}
