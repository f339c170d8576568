//! The pages of mapped files that a pre-started runtime has: discarded, or shared with clones.
//!
//! What a runtime needed to start stays in the host's page cache, and what the program needs of
//! it comes back when it is touched. But a process that ends has to unmap each page before it is
//! gone, and whoever waits for its end waits for that: 1 ms of node's 3.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The read-only mappings of files in `smaps`, those of this process, that nothing was changed in.
pub fn unchanged(smaps: &str) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    let mut mapping: Option<Mapping> = None;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Rss:"), Some(size)) => {
                let last = mapping.iter_mut();
                last.for_each(|mapping| mapping.is_used = size != "0");
            }
            // No page of it was ever changed.
            (Some("Anonymous:"), Some("0")) => mappings.extend(mapping.take()),
            (Some(name), _) if name.ends_with(':') => {}
            (Some(range), Some(rights)) => mapping = read(range, rights, words.nth(3)),
            _ => {}
        }
    }
    mappings
}

/// Gives all pages of `mappings` back. What is touched again is read from its file.
///
/// # Safety
/// `mappings` are those of this process as it is now.
pub unsafe fn discard(mappings: &[Mapping]) {
    mappings.iter().for_each(Mapping::discard);
}

/// Has the clones of this process start with the pages of `mappings` that it has itself.
///
/// The kernel copies no page table of a mapping that can be read from its file again, and a
/// clone would fault its pages in one by one: a third of all its faults in a short run.
///
/// # Safety
/// `mappings` are those of this process as it is now.
pub unsafe fn share_with_clones(mappings: &[Mapping]) {
    let used = mappings.iter().filter(|mapping| mapping.is_used);
    used.for_each(Mapping::privatise_first_page);
}

/// Has a page of `mappings` that is touched come alone, until the answer is dropped. Else the
/// kernel maps its fifteen neighbours too, and every clone has to copy and to unmap them.
///
/// It does not where writes are watched with userfaultfd. These mappings cannot be written.
///
/// # Safety
/// `mappings` are those of this process as it is now.
pub unsafe fn fault_singly(mappings: &[Mapping]) -> Option<OwnedFd> {
    const USER_MODE_ONLY: c_int = 1;
    const API: libc::Ioctl = 0xc018_aa3f;
    const REGISTER: libc::Ioctl = 0xc020_aa00;
    const WRITES: u64 = 2;
    /// Nobody has to resolve a write: it is only noted.
    const ASYNC: u64 = 1 << 15;
    // SAFETY: userfaultfd takes flags and returns a new file descriptor.
    let watch = unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC) };
    let watch = RawFd::try_from(watch).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel just returned it to us; nothing else owns it.
    let watch = unsafe { OwnedFd::from_raw_fd(watch) };
    let mut api = [0xaa, ASYNC, 0];
    // SAFETY: UFFDIO_API reads and writes a `uffdio_api`: three numbers, which `api` is.
    if unsafe { libc::ioctl(watch.as_raw_fd(), API, api.as_mut_ptr()) } != 0 {
        return None;
    }
    for mapping in mappings {
        let length = (mapping.end - mapping.start) as u64;
        let mut range = [mapping.start as u64, length, WRITES, 0];
        // SAFETY: UFFDIO_REGISTER reads and writes a `uffdio_register`: four numbers, which
        // `range` is. Nothing that is read in the range changes.
        unsafe { libc::ioctl(watch.as_raw_fd(), REGISTER, range.as_mut_ptr()) };
    }
    Some(watch)
}

/// Memory that is mapped from a file, and cannot be written.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    start: usize,
    end: usize,
    rights: c_int,
    /// Whether some of it is there.
    is_used: bool,
}

impl Mapping {
    fn discard(&self) {
        let start = self.start as *mut c_void;
        // SAFETY: our callers' callers say that it is mapped so: privately from a file, nothing
        // changed in it, and nobody can write. It reads the same afterwards.
        unsafe { libc::madvise(start, self.end - self.start, libc::MADV_DONTNEED) };
    }

    /// Makes its first page this process' own, with the same bytes: the kernel then copies the
    /// page table for a clone.
    fn privatise_first_page(&self) {
        let (start, length) = (self.start as *mut c_void, self.end - self.start);
        // SAFETY: the range is mapped, stays readable and executable as it was, and this
        // process has one thread, so that nobody runs in it meanwhile.
        let opened = unsafe { libc::mprotect(start, length, self.rights | libc::PROT_WRITE) };
        if opened != 0 {
            return;
        }
        let first = start.cast::<u8>();
        // SAFETY: mprotect succeeded, so it is mapped; and it is readable.
        let byte = unsafe { first.read_volatile() };
        // SAFETY: and now writable. The same byte is written, so nobody sees a change.
        unsafe { first.write_volatile(byte) };
        // SAFETY: the same range, with the rights that it had.
        unsafe { libc::mprotect(start, length, self.rights) };
    }
}

/// The mapping that a header of `smaps` describes, if it is of a file and cannot be written.
fn read(range: &str, rights: &str, file: Option<&str>) -> Option<Mapping> {
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let is_file = file.is_some_and(|file| file.starts_with('/'));
    let runs = match rights {
        "r--p" => 0,
        "r-xp" => libc::PROT_EXEC,
        _ => return None,
    };
    is_file.then_some(Mapping {
        start: number(start)?,
        end: number(end)?,
        rights: libc::PROT_READ | runs,
        is_used: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0-55e0 r--p 00000000 fe:00 12 /usr/bin/python3
Size:                 64 kB
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
55e0-55f0 r-xp 00010000 fe:00 12 /usr/bin/python3
Rss:                   0 kB
Anonymous:             0 kB
55f0-5600 r--p 00020000 fe:00 12 /usr/bin/python3
Rss:                   8 kB
Anonymous:             4 kB
5600-5610 rw-p 00030000 fe:00 12 /usr/bin/python3
Rss:                   8 kB
Anonymous:             0 kB
5610-5620 r--p 00000000 00:00 0 [vvar]
Anonymous:             0 kB
";

    #[test]
    fn only_file_mappings_that_were_never_changed_and_cannot_be_are_unchanged() {
        let found = unchanged(SMAPS);
        let first = Mapping {
            start: 0x55d0,
            end: 0x55e0,
            rights: libc::PROT_READ,
            is_used: true,
        };
        let second = Mapping {
            start: 0x55e0,
            end: 0x55f0,
            rights: libc::PROT_READ | libc::PROT_EXEC,
            is_used: false,
        };
        assert_eq!(found, [first, second]);
        for cut in 0..SMAPS.len() {
            assert!(unchanged(&SMAPS[..cut]).len() <= 2);
        }
    }
}
