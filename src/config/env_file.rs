//! A file with variables for a server (`envFile`), as editors read them: `NAME=value` in each line.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::stamp::Stamp;
use crate::request::check_variable;

const LARGEST: u64 = 64 << 10;

/// Such a file, as it is when this is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvFile {
    path: PathBuf,
    stamp: Stamp,
}

impl EnvFile {
    pub fn new(path: PathBuf) -> Self {
        let stamp = Stamp::of([path.clone()]);
        Self { path, stamp }
    }

    pub fn has_changed(&self) -> bool {
        Stamp::of([self.path.clone()]) != self.stamp
    }
}

/// The variables in a file. No message has anything of what is in it: its values are secrets.
pub fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let wrong = |why: &str| format!("its `envFile` {}: {why}", path.display());
    if !path.is_absolute() {
        return Err(wrong("it must be an absolute path, or begin with ~/"));
    }
    // A pipe would have us wait for whoever writes to it.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let file = file.map_err(|error| wrong(&error.to_string()))?;
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err(wrong("it is no file"));
    }
    let mut text = String::new();
    let length = file.take(LARGEST + 1).read_to_string(&mut text);
    match length {
        Err(_) => return Err(wrong("it is no text")),
        Ok(length) if length as u64 > LARGEST => return Err(wrong("it is too large")),
        Ok(_) => {}
    }
    parse(&text).map_err(|line| wrong(&format!("line {line} is not NAME=value")))
}

/// The number of the line that is none of them, if there is one.
fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, written) = line.split_once('=').ok_or(number + 1)?;
        let (name, value) = (name.trim(), value(written.trim()).ok_or(number + 1)?);
        // A line of something longer may have an `=` too: what stands before it is not told.
        check_variable(name, &value).map_err(|_| number + 1)?;
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// What is written: in quotes as it is, else without the comment behind it. None for a quote that does not end.
fn value(written: &str) -> Option<String> {
    let Some(quote) = written
        .chars()
        .next()
        .filter(|it| ['"', '\'', '`'].contains(it))
    else {
        let end = written.find(" #").unwrap_or(written.len());
        return Some(written[..end].trim_end().to_owned());
    };
    let mut value = String::new();
    let mut letters = written[1..].chars();
    loop {
        match letters.next()? {
            letter if letter == quote => return Some(value),
            '\\' if quote == '"' => value.push(match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            letter => value.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_editors_write_them() {
        let text = "\u{feff}# of ours\n\nA=1\r\n export B = two words # said \nC=\"x # \\\"y\\\"\\n\" # z\nD='$A \\n'\nE=\nF=a=b#c\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x # \"y\"\n"),
            ("D", "$A \\n"),
            ("E", ""),
            ("F", "a=b#c"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("A=1\nsecret\n"), Err(2));
        for broken in ["A=\"x", "A='", "A=\"\\", "a b=1", "c2VjcmV0+x=="] {
            assert_eq!(parse(broken), Err(1), "{broken}");
        }
    }
}
