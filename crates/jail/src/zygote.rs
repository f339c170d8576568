//! Inside a runtime that makes cells of itself: the library in front of its libc.
//!
//! It does nothing until the runtime opens the program's file. There it stops, and
//! answers requests as any spawner does; each cell's worker comes back from that
//! call in its own cell, at the word to go, and opens the file that is there.
//! So the runtime runs the program exactly as it always does.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Failed, step};
use crate::init::Hooks;
use crate::spawner::{Task, give_up, receive_handoff};
use crate::sys;

/// The descriptor of our task, until it is taken.
static TASK: AtomicI32 = AtomicI32::new(-1);
/// Where our variables begin in the environment that /proc shows.
static OURS: AtomicUsize = AtomicUsize::new(0);
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// Before the runtime has read its environment: takes our two variables out of it.
extern "C" fn loaded() {
    if let Some(task) = sys::take_variable(c"HOTCELL_ZYGOTE") {
        // The first of our two, which are the last of all.
        let value = sys::variable_address(c"LD_PRELOAD").unwrap_or(0);
        OURS.store(value.saturating_sub("LD_PRELOAD=".len()), Ordering::Relaxed);
        sys::take_variable(c"LD_PRELOAD");
        TASK.store(
            task.to_str().map_or(-1, |t| t.parse().unwrap_or(-1)),
            Ordering::Relaxed,
        );
    }
}

type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;

/// # Safety
/// As for libc's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: our caller's arguments, passed on.
    unsafe { open(c"fopen64", path, mode) }
}

/// # Safety
/// As for libc's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: our caller's arguments, passed on.
    unsafe { open(c"fopen", path, mode) }
}

unsafe fn open(name: &CStr, path: *const c_char, mode: *const c_char) -> *mut c_void {
    if TASK.load(Ordering::Relaxed) >= 0 {
        // SAFETY: callers of fopen pass a C string.
        make_cells(unsafe { CStr::from_ptr(path) });
    }
    // SAFETY: our caller's arguments, passed on.
    unsafe { next_open(name, path, mode) }
}

/// What libc itself would do.
unsafe fn next_open(name: &CStr, path: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: a name and a handle; libc has both functions.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    // SAFETY: that is libc's function of this type.
    let next = unsafe { std::mem::transmute::<*mut c_void, Open>(next) };
    // SAFETY: our caller's arguments, passed on.
    unsafe { next(path, mode) }
}

/// Makes cells if `path` is the program's. Returns in the worker of a cell.
fn make_cells(path: &CStr) {
    // Read once to know the path, and kept for the moment it comes.
    static READ: Mutex<Option<Task>> = Mutex::new(None);
    let mut task = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if task.is_none() {
        let descriptor: RawFd = TASK.load(Ordering::Relaxed);
        *task = receive_handoff(descriptor).ok();
    }
    let is_ours = |task: &mut Task| path.to_bytes() == task.script.as_os_str().as_bytes();
    let Some(mut taken) = task.take_if(is_ours) else {
        return;
    };
    drop(task);
    TASK.store(-1, Ordering::Relaxed);
    // Where it cannot be done, a program that looks for our variables finds them.
    let _ = taken
        .spawner
        .own_stat()
        .map(|stat| sys::cut_environment(&stat, OURS.load(Ordering::Relaxed)));
    if let Some(runtime) = Runtime::find(&taken.fork) {
        let lock = (runtime.ensure)();
        let runtime = RUNTIME.get_or_init(|| runtime);
        let warmed = step("warming the zygote", || runtime.run(&taken.warm));
        if let Err(failed) = warmed {
            give_up(&taken.control, failed);
        }
        taken.spawner.hooks = Some(Hooks {
            before: || {
                RUNTIME
                    .get()
                    .into_iter()
                    .for_each(|runtime| (runtime.before)())
            },
            parent: || {
                RUNTIME
                    .get()
                    .into_iter()
                    .for_each(|runtime| (runtime.parent)())
            },
            child: || {
                let runtime = RUNTIME.get().ok_or(io::ErrorKind::NotFound)?;
                (runtime.child)();
                runtime.run(&runtime.fork)
            },
            go: |word| {
                let runtime = RUNTIME.get().ok_or(io::ErrorKind::NotFound)?;
                let word = std::str::from_utf8(word).map_err(io::Error::other)?;
                runtime.run(word)
            },
        });
        taken.spawner.work(&taken.control);
        // Its descriptor is closed already.
        std::mem::forget(taken.control);
        if !taken.leave.is_empty() {
            runtime.finish(path, &taken.leave);
        }
        (runtime.release)(lock);
    } else {
        give_up(
            &taken.control,
            Failed {
                step: "finding the runtime's own functions".to_owned(),
                errno: libc::ENOENT,
            },
        );
    }
}

/// What we need of the runtime: CPython's names, found in the process itself.
struct Runtime {
    ensure: extern "C" fn() -> c_int,
    release: extern "C" fn(c_int),
    before: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
    run: extern "C" fn(*const c_char) -> c_int,
    run_file: extern "C" fn(*mut c_void, *const c_char, c_int, *const c_void) -> c_int,
    fork: String,
}

impl Runtime {
    fn find(fork: &str) -> Option<Self> {
        Some(Self {
            // The documented types of these functions, in every CPython since 3.7.
            ensure: function(c"PyGILState_Ensure")?,
            release: function(c"PyGILState_Release")?,
            before: function(c"PyOS_BeforeFork")?,
            parent: function(c"PyOS_AfterFork_Parent")?,
            child: function(c"PyOS_AfterFork_Child")?,
            run: function(c"PyRun_SimpleString")?,
            run_file: function(c"PyRun_AnyFileExFlags")?,
            fork: fork.to_owned(),
        })
    }

    /// Runs the program as the runtime's own main does, and ends the process after it.
    ///
    /// To take the interpreter apart would copy its memory once more, page by page. What
    /// a program can see of that, `leave` does.
    fn finish(&self, path: &CStr, leave: &str) -> ! {
        // SAFETY: two C strings.
        let file = unsafe { next_open(c"fopen64", path.as_ptr(), c"rb".as_ptr()) };
        let code = if file.is_null() {
            2
        } else {
            i32::from((self.run_file)(file, path.as_ptr(), 1, std::ptr::null()) != 0)
        };
        let _ = self.run(&leave.replace("{code}", &code.to_string()));
        sys::exit_now(code);
    }

    /// Runs code that leaves no name behind.
    fn run(&self, code: &str) -> io::Result<()> {
        let hex: String = code.bytes().map(|byte| format!("{byte:02x}")).collect();
        let code = CString::new(format!("exec(bytes.fromhex('{hex}').decode(), {{}})"))?;
        match (self.run)(code.as_ptr()) {
            0 => Ok(()),
            _ => Err(io::ErrorKind::Other.into()),
        }
    }
}

/// A function of this process by its name; `T` must be its type.
fn function<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: a name and a handle.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: our callers name the function's own type, which is a pointer to it.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}
