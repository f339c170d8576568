//! The sandbox: it makes cells and knows nothing of languages, MCP or sessions.
//!
//! Three processes run code of this crate. The *server* holds a [`Host`] and one
//! [`Jail`] for each view of it; the *spawner* ([`spawner`]) makes cells; the
//! *init* of each cell ([`init`]) builds its walls and starts the program. All three
//! are the same binary: [`hook`] must be the first thing that `main` calls. A
//! runtime that is started before its program is known ([`prestart`]) runs some of
//! it too, in a library that is not ours.

mod cell;
pub mod cgroup;
pub mod codec;
pub mod container;
mod devices;
mod error;
mod freeze;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod gvisor;
mod host;
pub mod init;
mod jail;
mod lease;
mod loan;
pub mod nested;
mod origin;
pub mod output;
mod policy;
pub mod prestart;
mod proc_usage;
mod processes;
mod shares;
mod slots;
mod spawner;
pub mod spec;
mod subordinate;
mod supervisor;
pub mod sys;
pub mod wire;

pub use cell::{Cell, Event, Watcher};
pub use error::{Failed, JailError};
pub use host::{Host, launch_early};
pub use jail::Jail;
pub use loan::Loan;
pub use origin::{Origin, can_give};
pub use policy::{
    Access, ENGINE, Limits, Link, Loaded, Mount, Policy, Terminal, Tree, View, Zygote,
};
pub use processes::Aside;
pub use spec::{Exit, Missing, Wall, WorkerWalls};

/// Becomes a spawner, or the init of a container, if this process was started as one; else returns.
pub fn hook() {
    let name = sys::command_line_start()[0];
    if name == supervisor::NAME {
        spawner::main();
    }
    match name.to_bytes() {
        name if name == container::PROGRAM.as_bytes() => container::main(),
        name if name == gvisor::PROGRAM.as_bytes() => container::main_of_guest(),
        name if name == gvisor::NAME.as_bytes() => gvisor::main(),
        name if name == nested::NAME.as_bytes() => nested::main(),
        _ => {}
    }
}
