//! The sandbox: it makes cells and knows nothing of languages, MCP or sessions.
//!
//! Three processes run code of this crate. The *server* holds a [`Host`] and one
//! [`Jail`] for each view of it ([`spawn`]); the *spawner* ([`spawner`]) makes
//! cells; the *init* of each cell ([`init`]) builds its walls and starts the
//! program. All three are the same binary: [`hook`] must be the first thing that
//! `main` calls.

use std::ffi::CStr;

pub mod cgroup;
mod error;
pub mod init;
mod keeper;
mod policy;
mod slots;
mod spawn;
mod spawner;
pub mod spec;
pub mod sys;
mod watcher;
mod wire;
#[cfg(feature = "zygote")]
mod zygote;

pub use error::{Failed, JailError};
pub use policy::{Access, ENGINE, Limits, Link, Mount, Policy, Tree, View, Zygote};
pub use spawn::{Cell, Event, Host, Jail};
pub use spec::{Exit, Go, Missing, Wall};

/// Becomes a spawner if this process was started as one; else returns.
pub fn hook() {
    if sys::first_words()[0] == keeper::SPAWNER {
        spawner::main();
    }
}

/// The same; and if our first argument is `early`, [`Host::open_early`] will be called and
/// finds a spawner that starts already. For a process that has one thread and knows nothing yet.
pub fn hook_early(early: &CStr) {
    hook();
    if sys::first_words()[1] == early {
        spawn::launch_early();
    }
}
