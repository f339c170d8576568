//! Lets go of what a waiting runtime needed to start: pages of its files.
//!
//! They stay in the host's cache, and what the program needs of them comes back when it
//! is touched. But a process that ends has to let go of each page before it is gone, and
//! whoever waits for its end waits for that: 1 ms of node's 3.

use std::ffi::{c_int, c_void};

/// Lets go of the files of this process, as its `smaps` have them. Where they are.
pub fn files(smaps: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut place = None;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            // No page of it was ever changed.
            (Some("Anonymous:"), Some("0")) => places.extend(place.take()),
            (Some(name), _) if name.ends_with(':') => {}
            (Some(range), Some(rights)) => place = read(range, rights, words.nth(3)),
            _ => {}
        }
    }
    places.iter().for_each(Place::forget);
    places
}

/// Has the clones of this process start with the pages of `places` that it has itself.
///
/// The kernel leaves a place out of the copy if it can be read from its file again, and a
/// clone would ask for it piece by piece: a third of all it asks for in a short run.
pub fn hand_on(places: &[Place]) {
    places.iter().for_each(Place::change);
}

/// Memory that is read from a file, and cannot be written.
pub struct Place {
    start: usize,
    end: usize,
    rights: c_int,
}

impl Place {
    fn forget(&self) {
        let start = self.start as *mut c_void;
        // SAFETY: the place is mapped from a file, nobody can have written to it, and nothing
        // of it was changed: it reads the same afterwards.
        unsafe { libc::madvise(start, self.end - self.start, libc::MADV_DONTNEED) };
    }

    /// Makes its first page this process' own, with the same bytes.
    fn change(&self) {
        let (start, length) = (self.start as *mut c_void, self.end - self.start);
        // SAFETY: it can be read and run as before, and this process has one thread.
        let opened = unsafe { libc::mprotect(start, length, self.rights | libc::PROT_WRITE) };
        if opened != 0 {
            return;
        }
        let first = start.cast::<u8>();
        // SAFETY: mapped, as we just saw, and readable.
        let byte = unsafe { first.read_volatile() };
        // SAFETY: and now writable; nobody sees the same byte written.
        unsafe { first.write_volatile(byte) };
        // SAFETY: as it was.
        unsafe { libc::mprotect(start, length, self.rights) };
    }
}

/// The place that a line of maps speaks of, if it is a file's and cannot be written.
fn read(range: &str, rights: &str, file: Option<&str>) -> Option<Place> {
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let is_file = file.is_some_and(|file| file.starts_with('/'));
    let runs = match rights {
        "r--p" => 0,
        "r-xp" => libc::PROT_EXEC,
        _ => return None,
    };
    is_file.then_some(Place {
        start: number(start)?,
        end: number(end)?,
        rights: libc::PROT_READ | runs,
    })
}
