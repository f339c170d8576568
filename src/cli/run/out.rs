//! The files that a program left, for the folder that its caller named.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use crate::cell::{ChangedFile, replace_file};
use crate::display::Displayed;
use crate::output::FileOutput;
use crate::request::bytes;
use crate::spool::Spooled;
use crate::store::{CallerOutputs, parse_address};

/// Writes them below `folder`, which is made if need be; those that are there already are replaced.
pub fn write(folder: &Path, files: &[ChangedFile]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    for file in files {
        let Some(content) = &file.content else {
            continue;
        };
        let mode = if file.is_executable { 0o755 } else { 0o644 };
        let path = Path::new(file.path.as_str());
        copy(&content.bytes, replace_file(folder.as_fd(), path, mode)?)?;
    }
    Ok(())
}

/// Writes those that a call of a session left, from where they are stored.
pub fn write_stored(
    folder: &Path,
    stored: CallerOutputs<'_>,
    files: &[FileOutput],
) -> io::Result<()> {
    let found = |file: &FileOutput| {
        let (run, name) = parse_address(file.uri.as_deref()?)?;
        Some((file.name.clone(), stored.find(run, &name)?))
    };
    let found: Vec<_> = files.iter().filter_map(found).collect();
    if found.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    for (name, bytes) in found {
        copy(
            &bytes,
            replace_file(folder.as_fd(), Path::new(&name), 0o644)?,
        )?;
    }
    Ok(())
}

/// Writes what it showed beside them, each by its number.
pub fn write_shown(folder: &Path, displays: &[Displayed]) -> io::Result<()> {
    if displays.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    for (number, displayed) in (1..).zip(displays) {
        let name = format!("display/{number}.{}", displayed.kind.extension());
        let mut file = replace_file(folder.as_fd(), Path::new(&name), 0o644)?;
        file.write_all(&displayed.data)?;
    }
    Ok(())
}

fn copy(bytes: &Spooled, mut file: File) -> io::Result<()> {
    let mut at = 0;
    while at < bytes.len() {
        let piece = bytes.read(at, 1 << 20)?;
        file.write_all(&piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// What was left behind, and how to get it: one line.
pub fn left_behind(files: &[ChangedFile]) -> Option<String> {
    const NAMED: usize = 5;
    let name = |file: &ChangedFile| {
        let name = file.path.as_str().escape_debug();
        format!("{name} ({})", bytes(file.size))
    };
    let named: Vec<String> = files.iter().take(NAMED).map(name).collect();
    let more = match files.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = (!named.is_empty()).then(|| named.join(", "))?;
    Some(format!(
        "left behind: {named}{more}; `--out DIR` writes such files to a folder"
    ))
}
