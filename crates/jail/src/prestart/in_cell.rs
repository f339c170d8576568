//! A runtime that a cell starts within its walls, where it waits for its program.

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::net::RecvFlags;

use super::{CellSpec, Inherited, RoleSpec, Runtime, TaskSpec, environment};
use crate::codec;
use crate::init::{bound_cpu, c_strings};
use crate::spec::{Start, Status, WorkerWalls};
use crate::{sys, wire};

/// Above all that a runtime opens before it comes to its program, and below the limit.
const HIGH: RawFd = 1000;

/// What a worker makes before a filter forbids it.
pub struct Prepared<'a> {
    runtime: &'a Runtime,
    /// Will hold the task: a cell without cgroups may make no memory file later.
    task: OwnedFd,
    status: Inherited,
    library: Inherited,
}

impl<'a> Prepared<'a> {
    pub fn new(runtime: &'a Runtime, status: &OwnedFd) -> io::Result<Self> {
        // Some runtimes ask where their program lies before they come to it. The library
        // takes the file away again.
        let script = Path::new(&runtime.zygote.script);
        if let Some(folder) = script.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        rustix::fs::open(script, flags, mode)?;
        Ok(Self {
            runtime,
            task: codec::memory_file()?,
            status: Inherited::leave(status, HIGH)?,
            library: Inherited::leave(&runtime.library, HIGH)?,
        })
    }

    /// Becomes the runtime, whose library reports the walls that stand and waits for the
    /// start message. Returns only if that failed.
    pub fn exec(self, walls: WorkerWalls) -> io::Result<()> {
        let zygote = &self.runtime.zygote;
        let status = self.status;
        let task = TaskSpec {
            zygote: zygote.clone(),
            role: RoleSpec::Cell(CellSpec { status, walls }),
        };
        codec::write_to(&self.task, &task)?;
        let task = Inherited::leave(&self.task, HIGH)?;
        let argv = c_strings(&zygote.argv)?;
        let library = format!("/proc/self/fd/{}", self.library.number());
        let env = environment(&zygote.env, &library, task.number())?;
        let path = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        Err(sys::exec(path, &argv, &env))
    }
}

/// The cell of a pre-started runtime, as the library in that runtime has it.
pub struct PrestartedCell {
    status: OwnedFd,
    walls: WorkerWalls,
}

impl CellSpec {
    pub fn take(self) -> io::Result<PrestartedCell> {
        Ok(PrestartedCell {
            status: self.status.take()?,
            walls: self.walls,
        })
    }
}

impl PrestartedCell {
    /// Reports that the walls stand, waits for the start message and returns its prelude.
    /// Ends the process if the walls are not enough, or nobody is left to start it.
    pub fn wait_for_start(self) -> String {
        let message = codec::to_bytes(&Status::Locked(self.walls));
        let told = wire::send(self.status.as_fd(), &message, &[]);
        let start = told.and_then(|()| wire::receive(self.status.as_fd(), RecvFlags::empty()));
        let start = start.ok().flatten();
        let Some(start) = start.and_then(|start| accepted(&start.bytes, self.walls)) else {
            sys::exit_now(0)
        };
        if bound_cpu(start.cpu_seconds).is_err() {
            sys::exit_now(1);
        }
        // SECURITY: the status socket and the library's file are not the program's to have.
        std::mem::forget(self.status);
        if sys::close_range(HIGH, RawFd::MAX, false).is_err() {
            sys::exit_now(1);
        }
        start.prelude
    }
}

/// A start message, if `walls` are enough for it; nothing is for a message that is not ours.
pub fn accepted(message: &[u8], walls: WorkerWalls) -> Option<Start> {
    let start: Start = codec::from_bytes(message).ok()?;
    walls.satisfy(start.required).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_starts_only_behind_the_required_walls() {
        let walls = |landlock| WorkerWalls {
            landlock,
            seccomp: true,
        };
        let message = codec::to_bytes(&Start {
            required: walls(6),
            cpu_seconds: 1,
            prelude: "x".to_owned(),
        });
        let prelude = |start: Start| start.prelude;
        assert_eq!(
            accepted(&message, walls(6)).map(prelude),
            Some("x".to_owned())
        );
        assert_eq!(accepted(&message, walls(5)), None);
        assert_eq!(accepted(&message[1..], walls(6)), None);
        assert_eq!(accepted(b"", walls(6)), None);
    }
}
