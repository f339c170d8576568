//! Where a runtime stops, and what happens there.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jail::prestart::{Hooks, PrestartedCell, Role, Task, ZygoteSpawner};
use jail::{Failed, Zygote, sys};

use crate::cpython::{self, CPython, Gil};
use crate::v8::V8;
use crate::{exit, heap, output, pages};

/// Where the runtime stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StopAt {
    /// Nowhere: there is no task, or it has been taken.
    Nowhere,
    /// Where the program is opened as a C stream. CPython looks at the file before, when it is
    /// still empty, and has frames on its stack then.
    Stream,
    /// At the first look at the program.
    FirstLook,
    /// Where it reads on, after it has opened the program and read its first bytes.
    SecondRead,
    /// Where the program is opened as a C stream, or at the first look at what comes before it.
    Loaded,
}

/// The task, until it is taken.
static TASK: Mutex<Option<Task>> = Mutex::new(None);
static STOP_AT: AtomicU8 = AtomicU8::new(StopAt::Nowhere as u8);

/// Has the runtime stop when it comes to its program.
pub fn arm(task: Task) {
    if let (Role::Program(program), None) = (&task.role, CPython::find()) {
        // Nothing is known of it: it would print as it likes.
        program.start_plainly(&task.zygote.env);
        sys::exit_now(1);
    }
    let at = match (&task.role, CPython::find()) {
        (Role::Cell(_), None) if !task.zygote.first.is_empty() => StopAt::SecondRead,
        (Role::Cell(_), None) => StopAt::FirstLook,
        (Role::Program(_), _) => StopAt::Loaded,
        _ => StopAt::Stream,
    };
    *lock() = Some(task);
    STOP_AT.store(at as u8, Ordering::Release);
}

pub fn stops_at(at: StopAt) -> bool {
    STOP_AT.load(Ordering::Acquire) == at as u8
}

/// The task, if it is not taken yet.
pub fn lock() -> MutexGuard<'static, Option<Task>> {
    TASK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops if `path` is the program's and the runtime stops at such a call. Returns in a cell, at
/// the start message.
///
/// # Safety
/// `path` is a C string or null.
pub unsafe fn look(path: *const c_char, call: StopAt) {
    let stops = match call {
        StopAt::Stream => [StopAt::Stream, StopAt::FirstLook, StopAt::Loaded]
            .into_iter()
            .any(stops_at),
        StopAt::FirstLook => stops_at(call) || stops_at(StopAt::Loaded),
        call => stops_at(call),
    };
    if !stops || path.is_null() {
        return;
    }
    // SAFETY: not null, and our caller vouches for it.
    let path = unsafe { CStr::from_ptr(path) };
    let taken = lock().take_if(|task| {
        let script = match (&task.role, call) {
            (Role::Program(program), StopAt::FirstLook) => &program.starter,
            _ => &task.zygote.script,
        };
        is_program(script, path)
    });
    if let Some(task) = taken {
        stop(task, path, call);
    }
}

fn is_program(script: &OsStr, path: &CStr) -> bool {
    let (script, given) = (script.as_bytes(), path.to_bytes());
    given == script || given.strip_prefix(b"/workspace/") == Some(script)
}

/// Does what the task asks for, once. Returns in a cell, at the start message.
pub fn stop(task: Task, path: &CStr, call: StopAt) {
    STOP_AT.store(StopAt::Nowhere as u8, Ordering::Relaxed);
    let Task { zygote, role } = task;
    let gil = CPython::find().map(CPython::lock);
    // Before what is there is hidden from those who look at all objects.
    let exit = match &gil {
        // What comes before a program starts that in a way of its own.
        Some(gil) if !zygote.leave.is_empty() && call == StopAt::Stream => {
            gil.prepare_exit(&zygote.leave).ok()
        }
        _ => None,
    };
    if let Some(gil) = gil.as_ref().filter(|_| zygote.gathers) {
        let gathers = gil.gather_output();
        if let (Ok(false), Role::Program(program)) = (&gathers, &role) {
            // It has streams of another kind, and would keep what it prints.
            program.start_plainly(&zygote.env);
        }
        if gathers.is_err() {
            // The server waits for what was never made.
            sys::exit_now(1);
        }
    }
    match role {
        Role::Spawner(spawner) => make_cells(*spawner, gil.as_ref(), &zygote, path),
        Role::Cell(cell) => wait_in_cell(cell, gil.as_ref(), &zygote, path),
        Role::Program(_) if output::gather().is_err() => sys::exit_now(1),
        Role::Program(_) => {}
    }
    output::begin();
    if let Some(gil) = gil {
        // The program would not see what it was promised.
        if gil.wait_ahead().is_err() {
            sys::exit_now(1);
        }
        if let Some(exit) = exit {
            gil.finish(path, &exit);
        }
        gil.unlock();
    }
}

/// Prepares for a program in a sandbox, and waits for it.
fn wait_in_cell(cell: PrestartedCell, gil: Option<&Gil>, zygote: &Zygote, path: &CStr) {
    // A program needs nothing of this: it only saves time.
    match (gil, V8::find()) {
        (Some(gil), _) => {
            let _ = prepare(gil, zygote)
                .and_then(|()| gil.run(&zygote.fork))
                .and_then(|()| gil.run_empty_program(path));
            if zygote.gathers && output::gather().is_err() {
                sys::exit_now(1);
            }
        }
        (None, Some(v8)) => {
            v8.run(&zygote.warm);
            // What it needed to start it does not need again; what a program
            // needs comes back with the second time.
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
            // SAFETY: the kernel just told us our own mappings, and those of files change no more.
            unsafe { pages::discard(&pages::unchanged(&smaps)) };
            v8.run(&zygote.warm);
            v8.exit_with(&zygote.leave);
        }
        (None, None) => {}
    }
    let _ = std::fs::remove_file(Path::new("/workspace").join(&zygote.script));
    if !zygote.lingers {
        exit::hold_memory_ahead();
    }
    let prelude = cell.wait_for_start();
    match (gil, V8::find()) {
        (Some(gil), _) if gil.run(&prelude).is_ok() => {}
        (None, _) if prelude.is_empty() => {}
        (None, Some(v8)) if v8.run(&prelude) => {}
        // The program would not see what it was promised.
        _ => sys::exit_now(1),
    }
}

/// Makes cells of this process, and returns in the worker of one.
fn make_cells(spawner: ZygoteSpawner, gil: Option<&Gil>, zygote: &Zygote, path: &CStr) {
    let Some(gil) = gil else {
        spawner.give_up(Failed {
            step: "finding the runtime's own functions".to_owned(),
            errno: libc::ENOENT,
        });
    };
    match warm(&spawner, gil, zygote, path) {
        Ok(hooks) => spawner.make_cells(hooks),
        Err(error) => spawner.give_up(Failed {
            step: "warming the zygote".to_owned(),
            errno: error.raw_os_error().unwrap_or(0),
        }),
    }
}

/// Runs what the runtime runs once. One that runs nothing is as it is.
fn prepare(gil: &Gil, zygote: &Zygote) -> std::io::Result<()> {
    if zygote.warm.is_empty() {
        return Ok(());
    }
    gil.offer_fork()?;
    gil.offer_large_pages()?;
    gil.run(&zygote.warm)
}

/// Does once what each clone would have to do, and puts memory in order for them.
fn warm(
    spawner: &ZygoteSpawner,
    gil: &Gil,
    zygote: &Zygote,
    path: &CStr,
) -> std::io::Result<Hooks> {
    prepare(gil, zygote)?;
    // Only what a program needs comes back, and its cells have that.
    let files = pages::unchanged(&spawner.own_smaps()?);
    // SAFETY: the kernel just told us our own mappings, and we have one thread.
    unsafe { pages::discard(&files) };
    // SAFETY: the same mappings: nothing was mapped since.
    let single = unsafe { pages::fault_singly(&files) };
    gil.run(&zygote.fork)?;
    gil.run_empty_program(path)?;
    gil.rehearse_fork();
    drop(single);
    let files = pages::unchanged(&spawner.own_smaps()?);
    // SAFETY: the kernel just told us our own mappings, and we have one thread.
    unsafe { pages::share_with_clones(&files) };
    let hooks = cpython::hooks(gil, &zygote.fork, zygote.gathers)?;
    heap::fill_holes();
    Ok(hooks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_name_and_by_its_path() {
        let is_ours = |path| is_program(OsStr::new("main.py"), path);
        assert!(is_ours(c"main.py") && is_ours(c"/workspace/main.py"));
        assert!(!is_ours(c"/main.py") && !is_ours(c"/workspace/lib/main.py"));
        assert!(!is_ours(c"") && !is_ours(c"main.pyc"));
    }
}
