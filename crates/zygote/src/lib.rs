//! The library in front of the libc of a pre-started runtime (`LD_PRELOAD`).
//!
//! It does nothing until the runtime comes to its program's file. There it stops. In a zygote it
//! answers requests as any spawner does, and each cell's worker comes back from that call in its
//! own cell, at the start message; in a cell it waits for that message itself. Then the runtime
//! goes on with the file that is there. So it runs the program exactly as it always does.
//!
//! Walls, messages and cells are the jail's ([`jail::prestart`]). Here is what the jail refuses
//! to know: where runtimes stop, and the functions of CPython and V8.

mod cpython;
mod environment;
mod exit;
mod heap;
pub mod interpose;
mod output;
mod pages;
mod script_read;
mod stop;
mod symbols;
mod v8;

use jail::init::c_strings;
use jail::prestart::{TASK, Task};
use jail::sys;

/// Called by the dynamic linker, before the runtime has read its environment.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// Takes the task and makes the environment what it is to be.
extern "C" fn loaded() {
    // SAFETY: the dynamic linker calls us before `main`, so there is one thread.
    let Some(value) = (unsafe { environment::variable(TASK) }) else {
        return;
    };
    let task = Task::receive(&value).and_then(|task| {
        let env = c_strings(&task.zygote.env)?;
        // SAFETY: one thread, and the runtime has not looked at its environment yet.
        unsafe { environment::replace(&env) }?;
        Ok(task)
    });
    match task {
        Ok(task) => {
            exit::may_linger(task.zygote.lingers);
            stop::arm(task);
        }
        // There would never be a program.
        Err(_) => sys::exit_now(1),
    }
}
