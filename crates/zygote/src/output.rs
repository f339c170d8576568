//! What the program prints, gathered in the file that the server reads too ([`jail::output`]).
//!
//! One process gathers: the one that was started. Its copies write to the pipe at once, as does everybody whose standard output is not the
//! pipe any more. Whatever could be seen out of order makes it write first: another way to the same file descriptor, another program.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use jail::output::{DATA, Field, HEAD, PATH};
use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

const STDOUT: RawFd = 1;
/// A line after so many milliseconds without one is written at once: somebody may wait for it.
const QUIET: u64 = 20;
/// How often the server is waited for, which takes a few microseconds.
const MOST_WAITS: u32 = 100_000;

/// The shared memory, as long as this process gathers.
static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// Who gathers. A process between vfork and exec has the same memory.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Whoever changes the runtime's part of the file.
static LOCK: Mutex<()> = Mutex::new(());
/// When something was last written to the pipe, in milliseconds.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The runtime's part of the file and the server's.
struct Shared(NonNull<u8>);

impl Shared {
    fn get() -> Option<Self> {
        NonNull::new(MEMORY.load(Ordering::Acquire)).map(Self)
    }

    /// Where so many bytes of the file come before.
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.as_ptr().wrapping_add(offset)
    }

    fn field(&self, field: Field) -> &AtomicU64 {
        // SAFETY: within the mapping, which is never taken away, and aligned. The server changes numbers of its own while we read
        // them: hence an atomic one.
        unsafe { &*self.at(field.offset()).cast::<AtomicU64>() }
    }

    fn load(&self, field: Field) -> u64 {
        self.field(field).load(Ordering::Relaxed)
    }

    fn store(&self, field: Field, value: u64) {
        self.field(field).store(value, Ordering::Release);
    }

    /// How much is in the data, of which the beginning may be written.
    fn used(&self) -> usize {
        (self.load(Field::Printed) - self.load(Field::Base)) as usize
    }

    /// Adds what has room. For the owner of the lock.
    fn add(&self, bytes: &[u8]) {
        let (at, printed) = (self.used(), self.load(Field::Printed));
        let bytes = &bytes[..bytes.len().min(DATA.saturating_sub(at))];
        let to = self.at(HEAD + at);
        // SAFETY: behind what the server reads, and within the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        self.store(Field::Printed, printed + bytes.len() as u64);
    }

    /// Writes all of it to the pipe. For the owner of the lock. An error, or a signal, leaves what was not written.
    fn write(&self) -> io::Result<()> {
        let printed = self.load(Field::Printed);
        if self.load(Field::Written) == printed {
            return Ok(());
        }
        self.store(Field::Writing, 1);
        // The server looks at ours after it has set its own, so that one of us sees the other.
        fence(Ordering::SeqCst);
        let mut waits = 0;
        while self.field(Field::Taking).load(Ordering::SeqCst) != 0 && waits < MOST_WAITS {
            waits += 1;
            std::thread::yield_now();
        }
        let base = self.load(Field::Base);
        let taken = self.field(Field::Taken).load(Ordering::Acquire);
        // The server's number is where the program can change it.
        let mut written = self.load(Field::Written).max(taken.min(printed));
        let mut result = Ok(());
        while written < printed {
            let data = self.at(HEAD + (written - base) as usize);
            let length = (printed - written) as usize;
            // SAFETY: within the data, which nobody changes: we have the lock.
            let bytes = unsafe { std::slice::from_raw_parts(data, length) };
            match write_some(STDOUT, bytes) {
                Ok(count) => written += count as u64,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.store(Field::Written, written);
        if written == printed {
            self.store(Field::Base, printed);
        }
        self.store(Field::Writing, 0);
        LAST.store(now(), Ordering::Relaxed);
        result
    }
}

/// Makes the file. For the process of a cell that will be the program, before that starts.
pub fn gather() -> io::Result<()> {
    let path = Path::new("/workspace").join(PATH);
    // The server does the same: one of us is first.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::ftruncate(&file, (HEAD + DATA) as u64)?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping of a file of this size, where there is room.
    let memory = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            HEAD + DATA,
            protection,
            MapFlags::SHARED,
            &file,
            0,
        )
    }?;
    OWNER.store(
        rustix::process::getpid().as_raw_nonzero().get(),
        Ordering::Relaxed,
    );
    MEMORY.store(memory.cast(), Ordering::Release);
    if let Some(shared) = Shared::get() {
        // The page is there when the program prints.
        shared.store(Field::Written, 0);
    }
    // The first time takes some calls.
    LAST.store(now(), Ordering::Relaxed);
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: two functions that any process may call.
        unsafe { libc::pthread_atfork(Some(before_fork), None, Some(after_fork)) };
    }
    Ok(())
}

/// The program starts now, and the server has opened the file: it needs no name any more.
pub fn begin() {
    if Shared::get().is_none() {
        return;
    }
    let _ = rustix::fs::unlink(Path::new("/workspace").join(PATH));
    LAST.store(now(), Ordering::Relaxed);
}

extern "C" fn before_fork() {
    write_first();
}

/// A copy gathers nothing: the memory is that of whom it is a copy of.
extern "C" fn after_fork() {
    MEMORY.store(std::ptr::null_mut(), Ordering::Release);
}

/// Adds to what was printed, and writes it if it is much, or time.
pub fn print(bytes: &[u8], waiting: &impl Waiting) -> io::Result<()> {
    let Some(shared) = Shared::get().filter(|_| bytes.len() <= DATA) else {
        return write_all(STDOUT, bytes, waiting);
    };
    let lock = || LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let locked = match LOCK.try_lock() {
        Ok(locked) => locked,
        Err(_) => waiting.aside(lock),
    };
    if shared.used() + bytes.len() > DATA {
        waiting.repeat(|| shared.write())?;
    }
    shared.add(bytes);
    let is_line = bytes.last() == Some(&b'\n');
    if is_line && now().saturating_sub(LAST.load(Ordering::Relaxed)) > QUIET {
        waiting.repeat(|| shared.write())?;
    }
    drop(locked);
    Ok(())
}

/// Writes what was printed.
pub fn flush(waiting: &impl Waiting) -> io::Result<()> {
    let Some(shared) = Shared::get() else {
        return Ok(());
    };
    waiting.repeat(|| {
        let _locked = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        shared.write()
    })
}

/// Writes to a file descriptor, after what was printed before.
pub fn write_all(fd: RawFd, mut bytes: &[u8], waiting: &impl Waiting) -> io::Result<()> {
    flush(waiting)?;
    while !bytes.is_empty() {
        let written = waiting.repeat(|| write_some(fd, bytes))?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// What a runtime does around a wait.
pub trait Waiting {
    /// Lets other threads of the runtime go on meanwhile.
    fn aside<T>(&self, work: impl FnOnce() -> T) -> T;

    /// Whether to go on after a signal.
    fn on_interrupt(&self) -> io::Result<()>;

    fn repeat<T>(&self, mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match self.aside(&mut work) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => self.on_interrupt()?,
                result => return result,
            }
        }
    }
}

/// Writes what was printed before something else happens that shows. If another thread is at it, that was earlier.
pub fn write_first() {
    let Some(shared) = Shared::get() else {
        return;
    };
    if shared.load(Field::Printed) == shared.load(Field::Written) || !is_owner() {
        return;
    }
    // A handler of a signal may have interrupted who has the lock.
    if let Ok(_lock) = LOCK.try_lock() {
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        // Whoever prints next is told.
        let _ = shared.write();
        set_errno(errno);
    }
}

/// The file descriptor is about to be another file's, or nobody's.
pub fn stop_gathering(fd: RawFd) {
    if fd == STDOUT && Shared::get().is_some() && is_owner() {
        write_first();
        MEMORY.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// Before a write of somebody else's.
pub fn before_write(fd: RawFd) {
    if fd == STDOUT || fd == STDOUT + 1 {
        write_first();
    }
}

/// From here on everything is written at once.
pub fn stop() {
    stop_gathering(STDOUT);
}

/// Sets what functions of libc set when they fail.
pub fn set_errno(number: i32) {
    // SAFETY: it takes nothing, and returns the address of a number of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: that address, which nobody else writes to.
    unsafe { *errno = number };
}

fn is_owner() -> bool {
    rustix::process::getpid().as_raw_nonzero().get() == OWNER.load(Ordering::Relaxed)
}

/// Not by libc's own, which we stand in front of.
fn write_some(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it may be closed or another's, as with any number that a program writes to.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::io::write(fd, bytes)?)
}

fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
