//! Fields of a definition that are checked while they are read.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use super::way::{self, Way, Word};
use crate::request::check_variable;

/// The command of a runtime that takes the program's file and nothing else.
pub(super) fn simple<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Word>, D::Error> {
    let words = way::words(Vec::<String>::deserialize(from)?).map_err(de::Error::custom)?;
    let count = |wanted: &Word| words.iter().filter(|word| *word == wanted).count();
    if words.first() != Some(&Word::Runtime) || count(&Word::Runtime) != 1 {
        return Err(de::Error::custom(
            "a command must start with `{runtime}` and contain it once",
        ));
    }
    let way = Way {
        run: words.clone(),
        ..Way::default()
    };
    way.check().map_err(de::Error::custom)?;
    Ok(words)
}

pub(super) fn program_names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    list(
        from,
        |name| name.bytes().all(plain) && !name.starts_with(['.', '-']),
        "the plain name of a program",
    )
}

/// SECURITY: a program sees all of such a folder, so it must be a tool chain's own.
pub(super) fn shown<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    let good = |path: &str| {
        let inside = ["/etc/", "/var/lib/"]
            .iter()
            .find_map(|it| path.strip_prefix(it));
        inside.is_some_and(|inside| {
            let (folder, last) = inside.rsplit_once('/').unwrap_or(("", inside));
            let before = last.split('*').next().unwrap_or_default();
            let named = folder
                .split('/')
                .all(|part| part != ".." && part.bytes().all(plain));
            named
                && !last.is_empty()
                && (before == last || before.len() >= 2)
                && !last.contains("..")
                && last.matches('*').count() <= 1
                && last.bytes().all(|byte| plain(byte) || byte == b'*')
        })
    };
    list(
        from,
        good,
        "a folder of a tool chain below /etc or /var/lib",
    )
}

pub(super) fn extensions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_+-".contains(&byte);
    list(
        from,
        |name| name.bytes().all(plain),
        "an extension: lower case, without a dot",
    )
}

pub(super) fn variables<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<String, String>::deserialize(from)?;
    for (name, value) in &variables {
        check_variable(name, value).map_err(de::Error::custom)?;
    }
    Ok(variables)
}

fn list<'de, D: Deserializer<'de>>(
    from: D,
    good: impl Fn(&str) -> bool,
    wanted: &str,
) -> Result<Vec<String>, D::Error> {
    let items = Vec::<String>::deserialize(from)?;
    match items.iter().find(|item| item.is_empty() || !good(item)) {
        Some(bad) => Err(de::Error::custom(format!("{bad:?} is not {wanted}"))),
        None => Ok(items),
    }
}
