//! What a program has printed and its runtime not yet written to the pipe ([`jail::output`]).
//!
//! SECURITY: all of it is the program's to change, also the numbers, so it is read like output and in no other way: bounded, never mapped. A
//! program that lies there changes what it has printed, which it may.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use jail::output::{DATA, Field, HEAD, PATH};
use rustix::fs::{Mode, OFlags, openat2};

use super::{FileIds, beneath};

/// Our end of it.
pub struct Pending(File);

impl AsFd for Pending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

struct Head([u8; HEAD]);

impl Head {
    fn get(&self, field: Field) -> u64 {
        let at = field.offset();
        let bytes = self.0[at..at + 8].try_into();
        bytes.map_or(0, u64::from_ne_bytes)
    }

    /// Where that begins which nobody has read.
    fn start(&self) -> u64 {
        self.get(Field::Written).max(self.get(Field::Taken))
    }

    fn has_more(&self) -> bool {
        self.get(Field::Printed) > self.start()
    }

    fn is_writing(&self) -> bool {
        self.get(Field::Writing) != 0
    }
}

impl Pending {
    /// Opens it, in the workspace of a cell whose program has not started: the runtime does the same, and then takes its name away.
    pub fn open(workspace: BorrowedFd<'_>, uid: Option<u32>) -> io::Result<Self> {
        let _ids = uid.map(FileIds::assume).transpose()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat2(workspace, PATH, flags, mode, beneath())?;
        Ok(Self(file.into()))
    }

    /// One that another process has opened.
    pub fn received(file: OwnedFd) -> Self {
        Self(file.into())
    }

    /// Whether something waits.
    pub fn has_more(&self) -> bool {
        self.head().is_some_and(|head| head.has_more())
    }

    /// Takes what waits, from a program that has printed nothing for a while. `is_silent` looks at the pipe, whose bytes come first.
    pub fn take(&self, is_silent: impl FnOnce() -> bool) -> Option<Vec<u8>> {
        let head = self.head()?;
        if !head.has_more() || head.is_writing() {
            return None;
        }
        self.set(Field::Taking, 1)?;
        // The runtime looks at ours after it has set its own, so that one of us sees the other.
        fence(Ordering::SeqCst);
        let taken = self.head().filter(|head| !head.is_writing() && is_silent());
        let bytes = taken.as_ref().map(|head| self.bytes(head, head.start()));
        if let Some(head) = taken {
            self.set(Field::Taken, head.get(Field::Printed))?;
        }
        self.set(Field::Taking, 0)?;
        bytes.filter(|bytes| !bytes.is_empty())
    }

    /// What is left of a program that has ended, of whose stream `read` bytes were read, from the pipe and here.
    pub fn rest(&self, read: u64) -> Vec<u8> {
        let Some(head) = self.head().filter(Head::has_more) else {
            return Vec::new();
        };
        // It ended in the middle of a write, of which nobody but the pipe knows how far it came.
        let cut = read.clamp(head.start(), head.get(Field::Printed));
        let from = if head.is_writing() { cut } else { head.start() };
        self.bytes(&head, from)
    }

    fn head(&self) -> Option<Head> {
        let mut head = [0; HEAD];
        self.0.read_exact_at(&mut head, 0).ok()?;
        Some(Head(head))
    }

    fn bytes(&self, head: &Head, from: u64) -> Vec<u8> {
        let at = from.saturating_sub(head.get(Field::Base));
        let length = head.get(Field::Printed).saturating_sub(from);
        if at.saturating_add(length) > DATA as u64 {
            return Vec::new();
        }
        let mut bytes = vec![0; length as usize];
        match self.0.read_exact_at(&mut bytes, HEAD as u64 + at) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    fn set(&self, field: Field, value: u64) -> Option<()> {
        let at = field.offset() as u64;
        self.0.write_all_at(&value.to_ne_bytes(), at).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(fields: &[(Field, u64)], data: &[u8]) -> Pending {
        let pending = Pending(tempfile::tempfile().unwrap());
        for field in [
            Field::Printed,
            Field::Written,
            Field::Base,
            Field::Writing,
            Field::Taken,
            Field::Taking,
        ] {
            pending.set(field, 0).unwrap();
        }
        pending.0.set_len((HEAD + DATA) as u64).unwrap();
        pending.0.write_all_at(data, HEAD as u64).unwrap();
        for &(field, value) in fields {
            pending.set(field, value).unwrap();
        }
        pending
    }

    #[test]
    fn what_waits_is_taken_once() {
        let pending = pending(
            &[
                (Field::Printed, 105),
                (Field::Written, 100),
                (Field::Base, 100),
            ],
            b"hello",
        );
        assert_eq!(pending.take(|| false), None, "the pipe comes first");
        assert_eq!(pending.take(|| true).unwrap(), b"hello");
        assert_eq!(pending.take(|| true), None);
        assert_eq!(pending.rest(105), b"");
        pending.set(Field::Printed, 107).unwrap();
        pending.0.write_all_at(b"!\n", HEAD as u64 + 5).unwrap();
        assert_eq!(pending.rest(105), b"!\n");
    }

    #[test]
    fn nothing_is_taken_while_it_is_written() {
        let fields = [(Field::Printed, 5), (Field::Writing, 1)];
        assert_eq!(pending(&fields, b"hello").take(|| true), None);
        assert_eq!(
            pending(&fields, b"hello").rest(2),
            b"llo",
            "two came through the pipe"
        );
        assert_eq!(pending(&fields, b"hello").rest(9), b"");
    }

    #[test]
    fn no_number_makes_more_of_it_than_there_is() {
        for fields in [
            [(Field::Printed, u64::MAX), (Field::Base, 0)],
            [(Field::Printed, 1 << 20), (Field::Base, 1 << 40)],
            [(Field::Printed, DATA as u64 + 1), (Field::Base, 0)],
        ] {
            assert_eq!(pending(&fields, b"x").take(|| true), None);
            assert_eq!(pending(&fields, b"x").rest(3), b"");
        }
    }
}
