//! Inside a runtime that waits for its program: the library in front of its libc.
//!
//! It does nothing until the runtime comes to the program's file. There it stops. In a
//! zygote it answers requests as any spawner does, and each cell's worker comes back from
//! that call in its own cell, at the word to go; in a cell it waits for that word itself.
//! Then the runtime goes on with the file that is there.
//! So it runs the program exactly as it always does.

mod cpython;
mod early;
mod shed;
mod v8;

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::RecvFlags;

use self::cpython::CPython;
use self::v8::V8;
use crate::error::{Failed, step};
use crate::init::c_strings;
use crate::spawner::{Place, Spawner, Task, give_up, receive_handoff, wait};
use crate::spec::{Go, Status};
use crate::{sys, wire};

/// Until it is done.
static TASK: Mutex<Option<Task>> = Mutex::new(None);
/// Which calls may be the ones to stop at.
static STOPS: AtomicU8 = AtomicU8::new(NOWHERE);
const NOWHERE: u8 = 0;
/// Where the program is opened as C streams are. CPython looks at the file before, when it
/// is still empty, and has frames on its stack then.
const STREAMS: u8 = 1;
/// At the first look.
const ANYWHERE: u8 = 2;
/// Where it is read on, after it was opened and begun.
const READS: u8 = 3;

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// Before the runtime has read its environment: makes that what it is to be.
extern "C" fn loaded() {
    let Some(number) = sys::variable(wait::TASK) else {
        return;
    };
    let number = number.trim_end_matches(wait::FILLER);
    let task = receive_handoff(number.parse().unwrap_or(-1)).and_then(|task| {
        sys::replace_environment(&c_strings(&task.env)?)?;
        Ok(task)
    });
    let Ok(task) = task else {
        // Without it there is nobody to wait for, and never a program.
        sys::exit_now(1);
    };
    let stops = match (&task.place, CPython::find()) {
        (Place::Cell { .. }, None) if !task.first.is_empty() => READS,
        (Place::Cell { .. }, None) => ANYWHERE,
        _ => STREAMS,
    };
    *lock_task() = Some(task);
    STOPS.store(stops, Ordering::Release);
}

/// Stops if `path` is the program's. Returns in a cell, at the word to go.
///
/// # Safety
/// `path` is a C string or null.
unsafe fn look(path: *const c_char, least: u8) {
    let stops = STOPS.load(Ordering::Acquire);
    if stops == NOWHERE || stops == READS || stops < least || path.is_null() {
        return;
    }
    // SAFETY: our caller says so.
    let path = unsafe { CStr::from_ptr(path) };
    let taken = lock_task().take_if(|task| is_program(task, path));
    if let Some(task) = taken {
        STOPS.store(NOWHERE, Ordering::Relaxed);
        stop(task, path);
    }
}

fn lock_task() -> MutexGuard<'static, Option<Task>> {
    TASK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_program(task: &Task, path: &CStr) -> bool {
    let script = task.script.as_bytes();
    let given = path.to_bytes();
    given == script || given.strip_prefix(b"/workspace/") == Some(script)
}

fn stop(task: Task, path: &CStr) {
    let Task {
        place,
        warm,
        fork,
        leave,
        script,
        ..
    } = task;
    let python = CPython::find();
    let lock = python.map(CPython::lock);
    // Before what is there is hidden from those who look at all objects.
    let leaving = match python {
        Some(python) if !leave.is_empty() => python.prepare(&leave).ok(),
        _ => None,
    };
    match place {
        Place::Zygote(spawner, control) => {
            make_cells(*spawner, control, python, [&warm, &fork], path);
        }
        Place::Cell {
            status,
            landlock,
            seccomp,
        } => {
            // A program needs nothing of this: it only saves time.
            match (python, V8::find()) {
                (Some(python), _) => {
                    let _ = python.run(&warm).and_then(|()| python.run(&fork));
                }
                (None, Some(v8)) => {
                    v8.warm(&warm);
                    // What it needed to start it does not need again; what a program
                    // needs comes back with the second time.
                    let smaps = std::fs::read_to_string("/proc/self/smaps");
                    shed::forget(&shed::files(&smaps.unwrap_or_default()));
                    v8.warm(&warm);
                    v8.finish(&leave);
                }
                (None, None) => {}
            }
            let _ = std::fs::remove_file(Path::new("/workspace").join(&script));
            let word = wait_in_cell(status, landlock, seccomp);
            match python {
                Some(python) if python.run(&word).is_ok() => {}
                None if word.is_empty() => {}
                // It would not see what it was promised.
                _ => sys::exit_now(1),
            }
        }
    }
    if let (Some(python), Some(lock)) = (python, lock) {
        if let Some(leaving) = leaving {
            python.finish(path, &leaving);
        }
        python.unlock(lock);
    }
}

/// Says that the walls stand, and waits for the word to go: what the runtime must do first.
fn wait_in_cell(status: OwnedFd, landlock: u8, seccomp: bool) -> String {
    let message = Status::Locked { landlock, seccomp }.to_bytes();
    let said = wire::send(status.as_fd(), &message, &[]);
    let go = said.and_then(|()| wire::receive(status.as_fd(), RecvFlags::empty()));
    let go = go.ok().flatten();
    let word = go.and_then(|go| {
        let word = Go::word(&go.bytes, landlock, seccomp)?;
        String::from_utf8(word.to_vec()).ok()
    });
    let Some(word) = word else { sys::exit_now(0) };
    // With the descriptor of this library.
    std::mem::forget(status);
    if sys::close_range(wait::HIGH, RawFd::MAX, false).is_err() {
        sys::exit_now(1);
    }
    word
}

/// Makes cells, and returns in the worker of one.
fn make_cells(
    mut spawner: Spawner,
    control: OwnedFd,
    runtime: Option<&CPython>,
    [warm, fork]: [&str; 2],
    path: &CStr,
) {
    let Some(runtime) = runtime else {
        give_up(
            &control,
            Failed {
                step: "finding the runtime's own functions".to_owned(),
                errno: libc::ENOENT,
            },
        );
    };
    let warmed = step("warming the zygote", || {
        runtime.run(warm)?;
        // Only what a program needs comes back, and its cells have that.
        let files = shed::files(&spawner.root.own_smaps()?);
        shed::forget(&files);
        let alone = shed::one_by_one(&files);
        runtime.run(fork)?;
        runtime.rehearse(path)?;
        drop(alone);
        shed::hand_on(&shed::files(&spawner.root.own_smaps()?));
        let hooks = cpython::hooks(runtime, fork)?;
        shed::fill_holes();
        Ok(hooks)
    });
    match warmed {
        Ok(hooks) => spawner.hooks = Some(hooks),
        Err(failed) => give_up(&control, failed),
    }
    spawner.work(&control);
    // Its descriptor is closed already.
    std::mem::forget(control);
}

/// libc's own function of this name, looked up once.
fn next(name: &CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let found = known.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: a name and a handle; libc has all of our functions.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    known.store(found, Ordering::Relaxed);
    found
}

/// A function of libc's that looks at a path before it does what it always does.
macro_rules! looks {
    ($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, $seen:expr, $least:expr) => {
        /// # Safety
        /// As for libc's own.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result {
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("it ends with NUL"),
            };
            // SAFETY: callers pass C strings, or null.
            unsafe { look($seen, $least) };
            let next = next(NAME, &NEXT);
            // SAFETY: that is libc's function of this type. Those that take a varying number of
            // arguments find them where we do: in registers.
            let next = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> $result>(next) };
            // SAFETY: our caller's arguments, passed on.
            unsafe { next($($arg),*) }
        }
    };
}

looks!(fopen(path: *const c_char, mode: *const c_char) -> *mut c_void, path, STREAMS);
looks!(fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void, path, STREAMS);
looks!(open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int, path, ANYWHERE);
looks!(open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int, path, ANYWHERE);
looks!(statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut c_void) -> c_int, path, ANYWHERE);
// libuv does not wait for libc to know a call.
looks!(syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long,
    if number == libc::SYS_statx || number == libc::SYS_openat { b as *const c_char } else { std::ptr::null() },
    ANYWHERE);

/// A function of this process by its name; `T` must be its type.
fn function<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: a name and a handle.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: our callers name the function's own type, which is a pointer to it.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}
