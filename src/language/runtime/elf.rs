//! The library search path written into a program, as the loader would read it.
//!
//! Python built with a shared library outside `/usr` carries the absolute path
//! of its `lib`. Only the few bytes needed are read: node alone is 100 MB.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The absolute folders of a 64-bit program's `RPATH` and `RUNPATH`; none if it
/// has none or is not such a program.
pub fn library_paths(program: &Path) -> Vec<PathBuf> {
    let text = File::open(program)
        .ok()
        .and_then(|file| run_path(&file))
        .unwrap_or_default();
    text.split(':')
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .collect()
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// A part of the file that the loader maps: where it is in the file and in memory.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

fn run_path(file: &File) -> Option<String> {
    let header = read(file, 0, 64)?;
    if header.len() < 64 || !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = read(
        file,
        number(&header, 32, 8)?,
        56 * usize::try_from(number(&header, 56, 2)?).ok()?,
    )?;
    let segments: Vec<Segment> = table.chunks_exact(56).filter_map(segment).collect();
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let entries = read(file, dynamic.offset, usize::try_from(dynamic.size).ok()?)?;
    let value = |wanted: u64| {
        let mut entries = entries.chunks_exact(16);
        entries
            .find(|entry| number(entry, 0, 8) == Some(wanted))
            .and_then(|entry| number(entry, 8, 8))
    };
    let address = value(DT_STRTAB)?.checked_add(value(DT_RUNPATH).or_else(|| value(DT_RPATH))?)?;

    // The dynamic section speaks of addresses; the file is read by offsets.
    let holds = |segment: &&Segment| {
        segment.kind == PT_LOAD
            && address
                .checked_sub(segment.address)
                .is_some_and(|at| at < segment.size)
    };
    let segment = segments.iter().find(holds)?;
    let text = read(
        file,
        segment.offset.checked_add(address - segment.address)?,
        4096,
    )?;
    let end = text.iter().position(|byte| *byte == 0)?;
    String::from_utf8(text[..end].to_vec()).ok()
}

fn segment(bytes: &[u8]) -> Option<Segment> {
    Some(Segment {
        kind: number(bytes, 0, 4)?,
        offset: number(bytes, 8, 8)?,
        address: number(bytes, 16, 8)?,
        size: number(bytes, 32, 8)?,
    })
}

/// At most 64 KiB from `offset`, less at the file's end.
fn read(file: &File, offset: u64, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size.min(64 << 10)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file
            .read_at(&mut bytes[filled..], offset.checked_add(filled as u64)?)
            .ok()?
        {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Some(bytes)
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + size)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one loaded segment at address 0x1000 that holds all of it.
    fn program(run_path: &str, tag: u64) -> Vec<u8> {
        let word = |number: u64| number.to_le_bytes();
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        bytes[32..40].copy_from_slice(&word(64));
        bytes[56] = 2;
        for (kind, offset, address, size) in
            [(1u64, 0u64, 0x1000u64, 0x1000u64), (2, 176, 0x10b0, 32)]
        {
            let start = bytes.len();
            bytes.resize(start + 56, 0);
            bytes[start..start + 4].copy_from_slice(&(kind as u32).to_le_bytes());
            for (at, number) in [(8, offset), (16, address), (32, size)] {
                bytes[start + at..start + at + 8].copy_from_slice(&word(number));
            }
        }
        for number in [DT_STRTAB, 0x1000 + 208, tag, 1] {
            bytes.extend(word(number));
        }
        bytes.push(0);
        bytes.extend(run_path.bytes().chain([0]));
        bytes
    }

    fn paths(bytes: &[u8]) -> Vec<PathBuf> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        library_paths(file.path())
    }

    #[test]
    fn absolute_folders_are_found_and_relative_ones_are_left_to_the_loader() {
        let expected = [PathBuf::from("/a/lib"), PathBuf::from("/b")];
        assert_eq!(
            paths(&program("/a/lib:$ORIGIN/../lib:/b", DT_RUNPATH)),
            expected
        );
        assert_eq!(paths(&program("/a/lib:/b", DT_RPATH)), expected);
        assert_eq!(paths(&program("/a/lib", 1)), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_file_cut_or_changed_anywhere_is_read_without_harm() {
        let whole = program("/a/lib", DT_RUNPATH);
        for end in 0..whole.len() {
            assert_eq!(paths(&whole[..end]), Vec::<PathBuf>::new(), "cut at {end}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        for at in 6..whole.len() {
            let mut changed = whole.clone();
            changed[at] = 0xff;
            std::fs::write(file.path(), &changed).unwrap();
            library_paths(file.path());
        }
    }
}
