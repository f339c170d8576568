//! Taking secrets out of what comes back: each value becomes its placeholder, also where
//! it arrives in pieces, and in the forms that the proxy itself gives it on the way out.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{Secret, percent_encoded};

/// Replaces values in a stream of bytes.
#[derive(Debug, Clone)]
pub struct Redactor {
    /// What to find and what to write, longest first.
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// Which bytes a value may begin with.
    firsts: [bool; 256],
    /// The beginning of a value, perhaps: it is not passed on before that is known.
    held: Vec<u8>,
}

impl Redactor {
    /// `None` if there is nothing to look for.
    pub fn new(secrets: &[Secret]) -> Option<Self> {
        let pairs = secrets.iter().flat_map(|secret| {
            let placeholder = secret.placeholder.as_bytes();
            let forms = forms(secret.value.reveal()).into_iter();
            forms.map(|form| (form, placeholder.to_vec()))
        });
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = pairs.collect();
        pairs.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        let mut firsts = [false; 256];
        for (value, _) in &pairs {
            firsts[usize::from(value[0])] = true;
        }
        (!pairs.is_empty()).then_some(Self {
            pairs,
            firsts,
            held: Vec::new(),
        })
    }

    /// Whether a name that is the same in capitals and in small letters has a value in it.
    pub fn is_in_name(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let mut values = self.pairs.iter().map(|(value, _)| value);
        values.any(|value| {
            let value = value.to_ascii_lowercase();
            name.as_bytes().windows(value.len()).any(|it| it == value)
        })
    }

    /// What can be passed on once these bytes have come too.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.held);
        let mut out = Vec::with_capacity(input.len());
        let mut rest = &input[..];
        while let Some(first) = rest.first() {
            if !self.firsts[usize::from(*first)] {
                out.push(*first);
                rest = &rest[1..];
                continue;
            }
            let mut may_begin = self.pairs.iter().filter(|(value, _)| value[0] == *first);
            if let Some((value, placeholder)) =
                may_begin.clone().find(|(value, _)| rest.starts_with(value))
            {
                out.extend_from_slice(placeholder);
                rest = &rest[value.len()..];
            } else if may_begin.any(|(value, _)| value.starts_with(rest)) {
                break;
            } else {
                out.push(*first);
                rest = &rest[1..];
            }
        }
        self.held = rest.to_vec();
        out
    }

    /// What was held back, at the end of the stream: no value, since it was not whole.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// A whole text at once.
    pub fn clean(&self, bytes: &[u8]) -> Vec<u8> {
        let mut own = Self {
            pairs: self.pairs.clone(),
            firsts: self.firsts,
            held: Vec::new(),
        };
        let mut out = own.feed(bytes);
        out.extend(own.finish());
        out
    }
}

/// The other way to write `%2F`.
fn small_digits(percent: &str) -> String {
    let mut digits = 0;
    let letter = |letter: char| {
        let is_digit = digits > 0;
        digits = if letter == '%' { 2 } else { digits.max(1) - 1 };
        if is_digit {
            letter.to_ascii_lowercase()
        } else {
            letter
        }
    };
    percent.chars().map(letter).collect()
}

/// Shorter pieces of base64 could be anything.
const SHORTEST: usize = 8;

/// A value as it is, as it stands in a URL and in a JSON text, and whatever it looks like inside of base64.
fn forms(value: &str) -> Vec<Vec<u8>> {
    if value.is_empty() {
        return Vec::new();
    }
    let percent = percent_encoded(value);
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut forms: Vec<Vec<u8>> = [
        value.to_owned(),
        small_digits(&percent),
        percent,
        json.trim_matches('"').to_owned(),
        json.trim_matches('"').replace('/', "\\/"),
    ]
    .map(String::into_bytes)
    .into();
    // Three bytes are four letters: it depends on what stands before it how it looks, and the letters that it shares with its
    // neighbours are no part of it.
    for before in 0..3 {
        let bytes = [&vec![0; before][..], value.as_bytes()].concat();
        let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for written in [
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            let inner = written.as_bytes().get(first..last).unwrap_or_default();
            if inner.len() >= SHORTEST {
                forms.push(inner.to_vec());
            }
        }
    }
    forms.retain(|form| !form.is_empty());
    forms.sort();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Hidden;

    #[test]
    fn a_value_is_replaced_wherever_the_stream_is_cut() {
        let secret = |value: &str, placeholder: &str| Secret {
            name: "KEY".to_owned(),
            placeholder: placeholder.to_owned(),
            value: Hidden::new(value),
            hosts: Vec::new(),
            header: None,
        };
        let secrets = [
            secret("sesame", "<1>"),
            secret("sesame open", "<2>"),
            secret("aab", "<3>"),
        ];
        let scrubber = Redactor::new(&secrets).unwrap();
        let text = b"x sesame open, sesam, sesame! aaab sesa";
        let expected = b"x <2>, sesam, <1>! a<3> sesa";
        assert_eq!(scrubber.clean(text), expected);
        for size in 1..text.len() {
            let mut scrubber = scrubber.clone();
            let mut out: Vec<u8> = text
                .chunks(size)
                .flat_map(|piece| scrubber.feed(piece))
                .collect();
            out.extend(scrubber.finish());
            let (out, expected) = (
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(expected),
            );
            // A longer value that begins with a shorter one is only seen whole.
            assert!(!out.contains("sesame"), "{size}: {out}");
            if size >= text.len() / 2 {
                assert_eq!(out, expected);
            }
        }
        assert!(Redactor::new(&[secret("", "<1>")]).is_none());
    }

    #[test]
    fn a_value_is_found_in_the_forms_that_it_is_sent_in() {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE};
        let value = "s\u{e9}s/ame?>\u{ff}-4711-open";
        let secret = Secret {
            name: "KEY".to_owned(),
            placeholder: "<1>".to_owned(),
            value: Hidden::new(value),
            hosts: Vec::new(),
            header: None,
        };
        let redactor = Redactor::new(&[secret]).unwrap();
        // What is left of it tells less than four of its bytes.
        let is_gone = |text: &str| {
            let clean = String::from_utf8(redactor.clean(text.as_bytes())).unwrap();
            assert!(clean.contains("<1>"), "{text}: {clean}");
        };
        for before in ["", "m", "me", "me:", "user:"] {
            for after in ["", "x", "xy", "xyz"] {
                let whole = format!("{before}{value}{after}");
                is_gone(&STANDARD.encode(&whole));
                is_gone(&URL_SAFE.encode(&whole));
            }
        }
        is_gone(&percent_encoded(value));
        is_gone(&small_digits(&percent_encoded(value)));
        assert_eq!(small_digits("A%2FB%C3%A9F"), "A%2fB%c3%a9F");
        is_gone(&serde_json::to_string(value).unwrap());
        assert!(redactor.is_in_name("x-S%c3%a9S%2FAME%3f%3e%C3%bf-4711-OPEN-y"));
        assert!(!redactor.is_in_name("x-key"));
        // Control: what is not the value stays.
        let other = STANDARD.encode("another text of about the same length");
        assert_eq!(redactor.clean(other.as_bytes()), other.as_bytes());
    }
}
