//! The name that a caller has for a session.

use std::fmt;

use super::RequestError;

/// 1 to 64 of `A-Z a-z 0-9 . _ -`. The only way to get one is [`SessionName::parse`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionName(String);

impl SessionName {
    pub fn parse(name: &str) -> Result<Self, RequestError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
            Ok(Self(name.to_owned()))
        } else {
            // Long enough to be recognised, short enough to be read.
            Err(RequestError::BadSession(name.chars().take(100).collect()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_short_plain_word() {
        for good in ["a", "my-data_2.0", &"x".repeat(64)] {
            assert_eq!(SessionName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "a\0", "é", &"x".repeat(65)] {
            assert!(SessionName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
