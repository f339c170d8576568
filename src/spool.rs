//! Bytes of unknown number: in memory while they are few, then in a file.
//!
//! All of them share one file without a name, in blocks: kept outputs take one descriptor in all, what is let go of makes room at
//! once, and there is a ceiling for everything together.

mod blocks;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use blocks::Blocks;

/// How many bytes stay in memory while a stream is on its way.
const IN_MEMORY: usize = 256 << 10;
/// How many of a stored one do.
const FEW: usize = 16 << 10;
/// How many are copied or compared at a time.
const PIECE: usize = 1 << 18;

/// A stream on its way to be stored.
#[derive(Default)]
pub struct Spool {
    /// How many of its first bytes are held elsewhere, and not here.
    elsewhere: u64,
    start: Vec<u8>,
    file: Option<Blocks>,
    /// Bytes of the stream, with those that are held elsewhere.
    len: u64,
    /// Set when the disk refused some of it: then none of it can be trusted.
    failed: Option<io::Error>,
}

impl Spool {
    /// For a stream whose first bytes are held elsewhere and come with
    /// [`finish_with`](Self::finish_with).
    pub fn after(bytes: usize) -> Self {
        Self {
            elsewhere: bytes as u64,
            ..Self::default()
        }
    }

    /// Adds bytes. Writes go to the page cache and take microseconds.
    pub fn add(&mut self, bytes: &[u8]) {
        let before = self.len;
        let elsewhere = self.elsewhere.saturating_sub(before);
        self.len += bytes.len() as u64;
        let passed = bytes.len().min(elsewhere as usize);
        let bytes = &bytes[passed..];
        if bytes.is_empty() || self.failed.is_some() {
            return;
        }
        if self.file.is_none() && self.start.len() + bytes.len() <= IN_MEMORY {
            self.start.extend_from_slice(bytes);
            return;
        }
        if let Err(error) = self.spill(bytes, before + passed as u64) {
            self.failed = Some(error);
            self.start = Vec::new();
            self.file = None;
        }
    }

    /// The bytes, all of them or an error.
    pub fn finish(self) -> io::Result<Spooled> {
        self.finish_with(&[])
    }

    /// The same, with the bytes that were held elsewhere.
    pub fn finish_with(self, beginning: &[u8]) -> io::Result<Spooled> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.file {
            None => {
                let bytes = [beginning, &self.start].concat();
                Ok(Spooled {
                    len: bytes.len() as u64,
                    content: Content::Memory(bytes),
                })
            }
            // SECURITY: a block may have been another stream's, so no byte of it is left unwritten.
            Some(_) if beginning.len() as u64 != self.elsewhere => {
                Err(io::ErrorKind::InvalidInput.into())
            }
            Some(mut file) => {
                file.write(beginning, 0)?;
                Ok(Spooled {
                    len: self.len,
                    content: Content::File(file),
                })
            }
        }
    }

    /// Writes bytes that stand at `at`, and those in memory before them.
    fn spill(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let file = self.file.get_or_insert_default();
        file.write(&std::mem::take(&mut self.start), self.elsewhere)?;
        file.write(bytes, at)
    }
}

/// Bytes that are all there. They never change.
#[derive(Debug)]
pub struct Spooled {
    content: Content,
    len: u64,
}

#[derive(Debug)]
enum Content {
    Memory(Vec<u8>),
    File(Blocks),
}

impl Default for Spooled {
    fn default() -> Self {
        Self {
            content: Content::Memory(Vec::new()),
            len: 0,
        }
    }
}

/// Nobody asks whether two hold the same bytes: each is itself.
impl PartialEq for Spooled {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Spooled {}

impl Spooled {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same out of memory, if it is more than a few bytes and there is room for it.
    pub fn set_down(self) -> Self {
        match &self.content {
            Content::Memory(bytes) if bytes.len() > FEW => {
                let mut file = Blocks::default();
                match file.write(bytes, 0) {
                    Ok(()) => Self {
                        content: Content::File(file),
                        len: self.len,
                    },
                    Err(_) => self,
                }
            }
            _ => self,
        }
    }

    /// The bytes from `offset` on, at most `most` of them.
    pub fn read(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let left = self.len.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(most);
        match &self.content {
            Content::Memory(bytes) => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                Ok(bytes[start..start + wanted].to_vec())
            }
            Content::File(file) => {
                let mut bytes = vec![0; wanted];
                file.read(&mut bytes, offset)?;
                Ok(bytes)
            }
        }
    }

    /// Writes all of it to a file.
    pub fn copy_to(&self, file: &mut File) -> io::Result<()> {
        self.pieces(|piece, _| file.write_all(piece).map(|()| true))
            .map(drop)
    }

    /// Whether a file of the same length has the same bytes.
    pub fn is_in(&self, file: &File) -> bool {
        let mut found = vec![0; PIECE];
        let same = self.pieces(|piece, at| {
            let found = &mut found[..piece.len()];
            file.read_exact_at(found, at)?;
            Ok(found == piece)
        });
        same.unwrap_or(false)
    }

    /// Looks at one piece after the other, for as long as `look` wants another; whether it wanted them all.
    fn pieces(&self, mut look: impl FnMut(&[u8], u64) -> io::Result<bool>) -> io::Result<bool> {
        let mut at = 0;
        while at < self.len {
            let piece = self.read(at, PIECE)?;
            if !look(&piece, at)? {
                return Ok(false);
            }
            at += piece.len() as u64;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_bytes_come_back_in_any_range() {
        for size in [0, 10, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY] {
            let all: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut spool = Spool::default();
            all.chunks(10_000).for_each(|chunk| spool.add(chunk));
            let stored = spool.finish().unwrap();
            assert_eq!(stored.len(), size as u64);
            assert_eq!(stored.read(0, usize::MAX).unwrap(), all);
            let middle = size / 2;
            let range = stored.read(middle as u64, 7).unwrap();
            assert_eq!(range, all[middle..size.min(middle + 7)]);
            assert!(stored.read(size as u64 + 5, 7).unwrap().is_empty());
        }
    }

    #[test]
    fn a_beginning_that_is_held_elsewhere_is_not_held_twice_and_comes_back_in_its_place() {
        for (held, size) in [
            (10, 4),
            (10, 10),
            (10, 30),
            (IN_MEMORY, IN_MEMORY),
            (IN_MEMORY, 5 * IN_MEMORY),
        ] {
            let all: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut spool = Spool::after(held);
            all.chunks(7000).for_each(|chunk| spool.add(chunk));
            assert!(spool.start.len() <= size.saturating_sub(held));
            assert_eq!(spool.file.is_some(), size > held + IN_MEMORY);
            let stored = spool.finish_with(&all[..held.min(size)]).unwrap();
            assert_eq!(stored.len(), size as u64);
            assert_eq!(stored.read(0, usize::MAX).unwrap(), all);
        }
    }
}
