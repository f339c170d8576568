//! What a program has of hotcell: its arguments, what it shows, values that it shares, tools that it may call.

use std::fmt::Display;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The program's arguments.
pub fn args() -> Vec<String> {
    std::env::args().skip(1).collect()
}

/// Prints a value on a line of its own.
pub fn display(value: impl Display) {
    println!("{value}");
}

/// Keeps a value by its name, as JSON text. The calls of a session share it, in every language.
pub fn set(name: &str, json: &str) -> Result<()> {
    let path = place(name)?;
    if json.len() > 1 << 20 {
        let why = "a value has 1 MiB at most; write it to a file";
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = path.with_file_name(format!("{name}~"));
    std::fs::write(&new, json)?;
    std::fs::rename(new, path)
}

/// A value that was kept, as JSON text.
pub fn get(name: &str) -> Option<String> {
    std::fs::read_to_string(place(name).ok()?).ok()
}

/// Calls a tool of an upstream server, with its arguments as JSON text: `call("github.list_issues", r#"{"repo": "x"}"#)`. Its result is JSON text.
pub fn call(tool: &str, arguments: &str) -> Result<String> {
    let mut command = Command::new("mcp");
    command.args(["call", tool, "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|_| {
        Error::new(ErrorKind::NotFound, "this run was given no servers: see `hotcell servers`")
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(arguments.as_bytes())?;
    }
    let done = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match done.status.success() {
        true => Ok(text(&done.stdout)),
        false => Err(Error::new(ErrorKind::Other, text(&done.stderr))),
    }
}

fn place(name: &str) -> Result<PathBuf> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    if !begins || name.len() > 64 || !name.chars().all(is_plain) {
        let why = format!("not a name for a value: {name}");
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    let home = std::env::var_os("HOME").unwrap_or_default();
    Ok(PathBuf::from(home).join(".hotcell/vars").join(name))
}
