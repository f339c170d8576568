//! What a wheel says it unpacks to: the directory at the end of a zip file.
//!
//! SECURITY: written by whoever made the package. Too small a number there is found when its files are counted; this keeps a cell from unpacking
//! gigabytes until then.

use std::collections::VecDeque;

use hyper::body::Bytes;

/// The end of a file, which is passed on when it has been looked at. A file that is no larger is looked at before any of it is passed on.
pub struct HeldBack {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    most: usize,
}

impl HeldBack {
    pub fn new(most: usize) -> Self {
        Self {
            pieces: VecDeque::new(),
            bytes: 0,
            most,
        }
    }

    /// Takes a piece; what may go on.
    pub fn pass(&mut self, piece: Bytes) -> Vec<Bytes> {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
        let mut free = Vec::new();
        // As much stays as is looked at, at least.
        while let Some(first) = self.pieces.front()
            && self.bytes - first.len() >= self.most
        {
            self.bytes -= first.len();
            free.extend(self.pieces.pop_front());
        }
        free
    }

    /// All that is left.
    pub fn rest(&mut self) -> Vec<Bytes> {
        self.bytes = 0;
        self.pieces.drain(..).collect()
    }

    /// What the zip file unpacks to that ends here.
    pub fn unpacked(&self) -> Option<u64> {
        unpacked(&self.pieces.iter().flatten().copied().collect::<Vec<u8>>())
    }
}

const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
/// The end without its comment, and the longest comment.
const END_SIZE: usize = 22;
const LONGEST_COMMENT: usize = 0xffff;
const ENTRY_SIZE: usize = 46;
/// In place of a number that is elsewhere, with more digits.
const ELSEWHERE: u32 = u32::MAX;

/// What a zip file unpacks to that `tail` is the end of; nothing if it is none.
pub fn unpacked(tail: &[u8]) -> Option<u64> {
    let last = tail.len().checked_sub(END_SIZE)?;
    let first = last.saturating_sub(LONGEST_COMMENT);
    let ends = (first..=last).rev();
    let ends: Vec<usize> = ends.filter(|at| tail[*at..].starts_with(&END)).collect();
    // Installers take the last that looks like an end, or the one whose comment is what follows it: either may be in the other's comment.
    let fits = |at: usize| {
        let comment = u16_at(tail, at + 20).map(usize::from);
        comment.is_some_and(|comment| at + END_SIZE + comment == tail.len())
    };
    let believed = ends.iter().enumerate();
    let believed = believed.filter(|(n, at)| *n == 0 || fits(**at));
    believed.filter_map(|(_, at)| of_directory(tail, *at)).max()
}

/// The sizes of all files in the directory whose end is `at`; the most if it begins before the tail.
fn of_directory(tail: &[u8], at: usize) -> Option<u64> {
    let mut size = u64::from(u32_at(tail, at + 12)?);
    let mut end = at;
    if size == u64::from(ELSEWHERE) || u32_at(tail, at + 16)? == ELSEWHERE {
        end = tail[..at].windows(4).rposition(|it| it == END_64)?;
        size = u64_at(tail, end + 40)?;
    }
    let Some(start) = usize::try_from(size)
        .ok()
        .and_then(|size| end.checked_sub(size))
    else {
        return Some(u64::MAX);
    };
    let mut rest = &tail[start..end];
    let mut sum = 0_u64;
    while rest.starts_with(&ENTRY) {
        let [name, extra, comment] = [28, 30, 32].map(|at| u16_at(rest, at).map(usize::from));
        let (name, extra, comment) = (name?, extra?, comment?);
        let more = rest.get(ENTRY_SIZE + name..ENTRY_SIZE + name + extra)?;
        sum = sum.saturating_add(match u32_at(rest, 24)? {
            ELSEWHERE => large_size(more)?,
            size => size.into(),
        });
        rest = rest.get(ENTRY_SIZE + name + extra + comment..)?;
    }
    Some(sum)
}

/// The size among the further fields of an entry: the first number of the field 1.
fn large_size(mut fields: &[u8]) -> Option<u64> {
    loop {
        let (id, length) = (u16_at(fields, 0)?, usize::from(u16_at(fields, 2)?));
        if id == 1 {
            return u64_at(fields, 4);
        }
        fields = fields.get(4 + length..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..at.checked_add(2)?)?;
    found.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at.checked_add(4)?)?;
    found.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(8)?)?;
    found.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::write::SimpleFileOptions;

    use super::*;

    fn packed(files: &[(&str, usize)], large: bool) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, size) in files {
            let options = SimpleFileOptions::default().large_file(large);
            writer.start_file(*name, options).unwrap();
            writer.write_all(&vec![b'0'; *size]).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn the_sizes_of_all_files_are_added_up() {
        for large in [false, true] {
            let file = packed(&[("a", 5), ("b/c", 3 << 20), ("d", 0)], large);
            assert_eq!(unpacked(&file), Some((3 << 20) + 5));
            // Its end alone is enough, as long as the directory is in it.
            assert_eq!(unpacked(&file[file.len() - 400..]), Some((3 << 20) + 5));
        }
        assert_eq!(
            unpacked(b"no zip file at all, but long enough for one"),
            None
        );
        let names: Vec<String> = (0..100).map(|n| format!("{n}")).collect();
        let many: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let many = packed(&many, false);
        assert_eq!(unpacked(&many[many.len() - 400..]), Some(u64::MAX));
    }

    #[test]
    fn an_end_in_the_comment_of_another_hides_nothing() {
        let mut file = packed(&[("a", 3 << 20)], false);
        let small = packed(&[("b", 1)], false);
        let length = u16::try_from(small.len()).unwrap();
        let at = file.len() - 2;
        file[at..].copy_from_slice(&length.to_le_bytes());
        file.extend(small);
        assert_eq!(unpacked(&file), Some(3 << 20));
    }

    #[test]
    fn no_damage_panics() {
        let file = packed(&[("a", 5), ("b", 7)], true);
        for at in 0..file.len() {
            let _ = unpacked(&file[at..]);
            let _ = unpacked(&file[..at]);
            for byte in [0, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                let _ = unpacked(&damaged);
            }
        }
    }

    #[test]
    fn the_end_is_held_back_and_nothing_is_lost() {
        let mut held = HeldBack::new(10);
        let mut passed = Vec::new();
        for n in 0..20_u8 {
            passed.extend(held.pass(Bytes::from(vec![n; 3])));
        }
        assert_eq!((passed.len(), held.bytes), (16, 12));
        passed.extend(held.rest());
        let all: Vec<u8> = passed.into_iter().flatten().collect();
        assert_eq!(all, (0..20_u8).flat_map(|n| [n; 3]).collect::<Vec<_>>());
        assert_eq!(HeldBack::new(0).pass(Bytes::from("x")).len(), 1);
    }
}
