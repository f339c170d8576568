//! Lets go of what a waiting runtime needed to start: pages of its files.
//!
//! They stay in the host's cache, and what the program needs of them comes back when it
//! is touched. But a process that ends has to let go of each page before it is gone, and
//! whoever waits for its end waits for that: 1 ms of node's 3.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The files in the memory of this process, as its `smaps` have them, that it changed nothing of.
pub fn files(smaps: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut place: Option<Place> = None;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Rss:"), Some(size)) => {
                place
                    .iter_mut()
                    .for_each(|place| place.is_used = size != "0");
            }
            // No page of it was ever changed.
            (Some("Anonymous:"), Some("0")) => places.extend(place.take()),
            (Some(name), _) if name.ends_with(':') => {}
            (Some(range), Some(rights)) => place = read(range, rights, words.nth(3)),
            _ => {}
        }
    }
    places
}

/// Lets go of all pages of `places`.
pub fn forget(places: &[Place]) {
    places.iter().for_each(Place::forget);
}

/// Has the clones of this process start with the pages of `places` that it has itself.
///
/// The kernel leaves a place out of the copy if it can be read from its file again, and a
/// clone would ask for it piece by piece: a third of all it asks for in a short run.
pub fn hand_on(places: &[Place]) {
    let used = places.iter().filter(|place| place.is_used);
    used.for_each(Place::change);
}

/// Has a page of `places` that is touched come alone, until the answer is dropped. Else the
/// kernel brings its fifteen neighbours too, and every clone has to copy and to let go of them.
///
/// It does so for memory whose changes are watched. These cannot be changed.
pub fn one_by_one(places: &[Place]) -> Option<OwnedFd> {
    const USER_MODE_ONLY: c_int = 1;
    const API: libc::Ioctl = 0xc018_aa3f;
    const REGISTER: libc::Ioctl = 0xc020_aa00;
    const WRITES: u64 = 2;
    /// Nobody is asked about a change: it is only noted.
    const ASYNC: u64 = 1 << 15;
    // SAFETY: it takes flags and gives a new descriptor.
    let watch = unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC) };
    let watch = RawFd::try_from(watch).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel just gave it to us.
    let watch = unsafe { OwnedFd::from_raw_fd(watch) };
    let mut api = [0xaa, ASYNC, 0];
    // SAFETY: a `uffdio_api`, three numbers.
    if unsafe { libc::ioctl(watch.as_raw_fd(), API, api.as_mut_ptr()) } != 0 {
        return None;
    }
    for place in places {
        let length = (place.end - place.start) as u64;
        let mut range = [place.start as u64, length, WRITES, 0];
        // SAFETY: a `uffdio_register`, four numbers. What is read there stays the same.
        unsafe { libc::ioctl(watch.as_raw_fd(), REGISTER, range.as_mut_ptr()) };
    }
    Some(watch)
}

/// Takes up the holes of the heap for good, so that what a clone asks for lies together:
/// each page of it that is touched there is copied.
pub fn fill_holes() {
    /// Less than what libc would map by itself.
    const ROOM: usize = 96 << 10;
    // SAFETY: it takes a size.
    let room = unsafe { libc::malloc(ROOM) };
    let large = [32 << 10, 16 << 10, 8 << 10, 4 << 10, 2 << 10];
    // More than there are; a libc that gives out places in another order has an end too.
    let mut most = 1 << 20;
    for size in large.into_iter().chain((24..=1032).rev().step_by(16)) {
        while most > size {
            most -= size;
            // SAFETY: it takes a size.
            let taken = unsafe { libc::malloc(size) };
            // What lies behind the room was no hole.
            if taken.is_null() || taken > room {
                break;
            }
        }
    }
    // SAFETY: it is ours, and the first that is given out from now on.
    unsafe { libc::free(room) };
}

/// Memory that is read from a file, and cannot be written.
pub struct Place {
    start: usize,
    end: usize,
    rights: c_int,
    /// Whether some of it is there.
    is_used: bool,
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
        is_used: false,
    })
}
