//! Bytes of unknown number: in memory while they are few, then in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::{Mode, OFlags, open};

/// How many bytes stay in memory.
const IN_MEMORY: usize = 256 << 10;

/// A stream on its way to be stored.
#[derive(Default)]
pub struct Spool {
    /// How many of its first bytes are held elsewhere, and not here.
    elsewhere: u64,
    start: Vec<u8>,
    file: Option<File>,
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
        let elsewhere = self.elsewhere.saturating_sub(self.len);
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
        if let Err(error) = self.spill(bytes) {
            self.failed = Some(error);
            self.file = None;
            self.start = Vec::new();
        }
    }

    pub fn finish(self) -> io::Result<Spooled> {
        self.finish_with(&[])
    }

    /// The whole stream, with the bytes from its beginning that were not added here.
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
            Some(file) => {
                file.write_all_at(beginning, 0)?;
                Ok(Spooled {
                    len: self.len,
                    content: Content::File(file),
                })
            }
        }
    }

    fn spill(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let mut file = nameless_file()?;
            file.seek(SeekFrom::Start(self.elsewhere))?;
            file.write_all(&std::mem::take(&mut self.start))?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Ok(()),
        }
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
    File(File),
}

impl Default for Spooled {
    fn default() -> Self {
        Self {
            content: Content::Memory(Vec::new()),
            len: 0,
        }
    }
}

impl Spooled {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
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
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
        }
    }
}

/// A file in the temporary folder that no path leads to.
fn nameless_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match open(&folder, flags, mode) {
        Ok(file) => Ok(file.into()),
        // Not every file system can do that; then it has a name for a moment.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let path = folder.join(format!("hotcell-{}", crate::random::random_name()));
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(error) => Err(error.into()),
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
