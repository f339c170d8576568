//! A runtime that is started with the library at the start message, when its program is there.
//!
//! The library then waits for nothing: it has what the program prints gathered, and otherwise does what a pre-started runtime does. Where it
//! cannot be loaded the program is started without it.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{Inherited, ProgramSpec, RoleSpec, TaskSpec, environment};
use crate::codec;
use crate::init::c_strings;
use crate::policy::{Policy, Zygote};
use crate::sys;

/// What a worker makes before a filter forbids it.
pub struct Loading<'a> {
    argv: Vec<CString>,
    env: Vec<CString>,
    task: OwnedFd,
    library: BorrowedFd<'a>,
}

impl<'a> Loading<'a> {
    /// `None` if the runtime could not load the library, or would show that it did.
    pub fn prepare(policy: &Policy, library: &'a OwnedFd) -> Option<Self> {
        let loaded = policy.loaded.as_ref()?;
        let has_proc = Path::new("/proc/self/fd").exists();
        if !has_proc || glibc_of(loaded.argv.first()?)? < loaded.glibc {
            return None;
        }
        let task = codec::memory_file().ok()?;
        let spec = TaskSpec {
            zygote: Zygote {
                fresh: true,
                has_input: false,
                gathers: true,
                // `hotcell run` would wait for it.
                lingers: false,
                first: String::new(),
                argv: loaded.argv.clone(),
                env: policy.env.clone(),
                script: loaded.script.clone(),
                warm: "".into(),
                fork: "".into(),
                leave: loaded.leave.clone(),
            },
            role: RoleSpec::Program(ProgramSpec {
                library: Inherited(library.as_raw_fd()),
                starter: loaded.starter.clone(),
                plain: policy.argv.clone(),
            }),
        };
        codec::write_to(&task, &spec).ok()?;
        let path = format!("/proc/self/fd/{}", library.as_raw_fd());
        Some(Self {
            argv: c_strings(&loaded.argv).ok()?,
            env: environment(&policy.env, &path, task.as_raw_fd()).ok()?,
            library: library.as_fd(),
            task,
        })
    }

    /// Becomes the runtime, whose library closes both files before it does anything else. Returns only if that failed.
    pub fn exec(self) -> io::Result<io::Error> {
        sys::keep_on_exec(self.library)?;
        sys::keep_on_exec(self.task.as_fd())?;
        let path = self.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(sys::exec(path, &self.argv, &self.env))
    }
}

/// How much of a program or loader is looked at: its head, and the names in it.
const HEAD: usize = 4096;

/// The newest minor version of glibc that the loader of a program names; nothing for another loader, or none.
fn glibc_of(program: &OsStr) -> Option<u32> {
    let program = File::open(program).ok()?;
    let loader = File::open(loader_of(&program)?).ok()?;
    version_in(&head_of(&loader)?)
}

fn head_of(file: &File) -> Option<Vec<u8>> {
    let mut head = vec![0; HEAD];
    let read = file.read_at(&mut head, 0).ok()?;
    head.truncate(read);
    Some(head)
}

/// Since version 2.34, every loader of glibc names it, so that libraries which need it are not loaded with older ones.
fn version_in(loader: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"GLIBC_2.";
    let names = loader.windows(NAME.len() + 3);
    let numbers = names.filter_map(|it| it.strip_prefix(NAME));
    let numbers = numbers.filter_map(|it| {
        let digits = it.iter().take_while(|it| it.is_ascii_digit());
        let number: String = digits.map(|it| char::from(*it)).collect();
        number.parse().ok()
    });
    numbers.max()
}

/// The loader that a 64-bit program names.
fn loader_of(program: &File) -> Option<std::path::PathBuf> {
    const PT_INTERP: u64 = 3;
    let head = &head_of(program)?[..];
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(number(head, 32, 8)?).ok()?;
    let count = usize::try_from(number(head, 56, 2)?).ok()?;
    let entries = head.get(table..)?.chunks_exact(56).take(count);
    let mut entries = entries.filter(|it| number(it, 0, 4) == Some(PT_INTERP));
    let entry = entries.next()?;
    let mut path = [0; 256];
    let read = program.read_at(&mut path, number(entry, 8, 8)?).ok()?;
    let end = path[..read].iter().position(|byte| *byte == 0)?;
    Some(OsStr::from_bytes(&path[..end]).into())
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Some(bytes.iter().rev().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_of_glibc_tells_its_version_and_no_other_does() {
        let names = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0";
        assert_eq!(version_in(names), Some(34));
        assert_eq!(version_in(b"musl libc (x86_64)\nVersion 1.2.5\n"), None);
        assert_eq!(version_in(b"GLIBC_2."), None);
        let own = std::env::current_exe().expect("a path");
        let is_dynamic = loader_of(&File::open(&own).expect("a file")).is_some();
        assert_eq!(glibc_of(own.as_os_str()).is_some(), is_dynamic);
        assert_eq!(glibc_of(OsStr::new("/proc/self/cmdline")), None);
    }

    #[test]
    fn no_head_of_a_program_is_too_short_or_too_strange() {
        let head = [b"\x7fELF\x02\x01".as_slice(), &[0xff; 3000]].concat();
        for length in [6, 40, 57, 64, 3000] {
            let file = tempfile_with(&head[..length]);
            assert_eq!(loader_of(&file), None);
        }
    }

    fn tempfile_with(bytes: &[u8]) -> File {
        let file = codec::memory_file().expect("a memory file");
        rustix::io::write(&file, bytes).expect("it is written");
        file.into()
    }
}
