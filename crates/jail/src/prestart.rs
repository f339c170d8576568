//! Runtimes that are started before their program is known.
//!
//! Such a runtime is started with a library in front of its libc (`LD_PRELOAD`) in a way that
//! nothing shows. The library is not ours: here is what it is told ([`Task`]) and what it calls
//! in return, [`ZygoteSpawner`] in a runtime that a spawner has become, [`PrestartedCell`] in
//! one that a cell has started within its walls. Nothing here knows any runtime.

mod environment;
pub(crate) mod in_cell;
pub(crate) mod loading;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

pub use self::environment::TASK;
pub(crate) use self::environment::environment;
pub use self::in_cell::PrestartedCell;
use crate::codec::{self, Codec, Reader, Writer, fields, garbled};
pub use crate::init::Hooks;
use crate::init::c_strings;
use crate::policy::Zygote;
use crate::spawner::Handoff;
pub use crate::spawner::ZygoteSpawner;
use crate::spec::WorkerWalls;
use crate::sys;

/// A runtime to start, and the library to start it with.
pub struct Runtime {
    pub zygote: Zygote,
    pub library: OwnedFd,
}

/// What the library is there for.
pub struct Task {
    pub zygote: Zygote,
    pub role: Role,
}

/// Where the runtime was started.
pub enum Role {
    /// In place of a spawner: it makes cells of itself.
    Spawner(Box<ZygoteSpawner>),
    /// In a cell, which is to run one program.
    Cell(PrestartedCell),
    /// In a cell whose program is there already.
    Program(StartedProgram),
}

/// A program whose runtime was started with the library.
pub struct StartedProgram {
    /// What comes before the program in some commands, in the workspace.
    pub starter: OsString,
    plain: Vec<OsString>,
}

impl StartedProgram {
    /// Starts it again as it is started without the library. Returns only if that failed.
    pub fn start_plainly(&self, env: &[OsString]) -> io::Error {
        let start = || {
            let argv = c_strings(&self.plain)?;
            let path = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
            Ok(sys::exec(path, &argv, &c_strings(env)?))
        };
        start().unwrap_or_else(|error| error)
    }
}

impl Task {
    /// Takes the task that the variable [`TASK`] has this `value` for. Once for each process.
    pub fn receive(value: &str) -> io::Result<Self> {
        let number = value.trim_end_matches(environment::FILLER);
        let number = number.parse().map_err(|_| garbled())?;
        let file = Inherited(number).take()?;
        let TaskSpec { zygote, role } = codec::from_memory_file(&file)?;
        let role = match role {
            RoleSpec::Spawner(handoff) => Role::Spawner(Box::new(handoff.take()?)),
            RoleSpec::Cell(cell) => Role::Cell(cell.take()?),
            RoleSpec::Program(program) => {
                // It has been loaded.
                drop(program.library.take()?);
                Role::Program(StartedProgram {
                    starter: program.starter,
                    plain: program.plain,
                })
            }
        };
        Ok(Self { zygote, role })
    }
}

/// A [`Task`] on its way through an exec.
#[derive(Debug, PartialEq)]
pub(crate) struct TaskSpec {
    pub zygote: Zygote,
    pub role: RoleSpec,
}

#[derive(Debug, PartialEq)]
pub(crate) enum RoleSpec {
    Spawner(Handoff),
    Cell(CellSpec),
    Program(ProgramSpec),
}

/// A [`PrestartedCell`] on its way through an exec.
#[derive(Debug, PartialEq)]
pub(crate) struct CellSpec {
    pub status: Inherited,
    pub walls: WorkerWalls,
}

/// A [`StartedProgram`] on its way through an exec.
#[derive(Debug, PartialEq)]
pub(crate) struct ProgramSpec {
    pub library: Inherited,
    pub starter: OsString,
    pub plain: Vec<OsString>,
}

fields!(TaskSpec { zygote, role });
fields!(ProgramSpec {
    library,
    starter,
    plain
});
fields!(CellSpec { status, walls });

impl Codec for RoleSpec {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Spawner(handoff) => {
                out.number(1);
                handoff.write(out);
            }
            Self::Cell(cell) => {
                out.number(2);
                cell.write(out);
            }
            Self::Program(program) => {
                out.number(3);
                program.write(out);
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(match input.number()? {
            1 => Self::Spawner(Codec::read(input)?),
            2 => Self::Cell(Codec::read(input)?),
            3 => Self::Program(Codec::read(input)?),
            _ => return Err(garbled()),
        })
    }
}

/// The number of a file descriptor that is left open across an exec.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Inherited(i32);

fields!(Inherited { 0 });

impl Inherited {
    /// Leaves a copy of `fd` open, as `least` or above.
    pub fn leave(fd: &OwnedFd, least: RawFd) -> io::Result<Self> {
        let copy = rustix::io::fcntl_dupfd_cloexec(fd, least)?;
        sys::keep_on_exec(copy.as_fd())?;
        let number = copy.as_raw_fd();
        // Whoever is started closes it, or this process ends without an exec.
        std::mem::forget(copy);
        Ok(Self(number))
    }

    #[cfg(test)]
    pub fn example(number: RawFd) -> Self {
        Self(number)
    }

    pub fn number(&self) -> RawFd {
        self.0
    }

    /// Takes it over, in the process that was started. It lives across no further exec.
    pub fn take(self) -> io::Result<OwnedFd> {
        let fd = sys::take_descriptor(self.0)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok(fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::check;

    #[test]
    fn a_task_survives_the_trip_and_no_damage_panics() {
        let zygote = Zygote {
            fresh: true,
            has_input: false,
            gathers: true,
            lingers: true,
            first: "#".to_owned(),
            argv: vec!["/usr/bin/python3".into(), "main.py".into()],
            env: vec!["HOME=/".into()],
            script: "main.py".into(),
            warm: "import re".into(),
            fork: "".into(),
            leave: "exit".into(),
        };
        let walls = WorkerWalls {
            landlock: 6,
            seccomp: true,
        };
        let status = Inherited(1001);
        for role in [
            RoleSpec::Cell(CellSpec { status, walls }),
            RoleSpec::Spawner(Handoff::example()),
        ] {
            let zygote = zygote.clone();
            check(&TaskSpec { zygote, role });
        }
    }

    #[test]
    fn a_number_that_is_no_open_file_descriptor_is_refused() {
        assert!(Inherited(-1).take().is_err());
        assert!(Inherited(i32::MAX).take().is_err());
        assert!(Task::receive("").is_err() && Task::receive("x").is_err());
        assert!(Task::receive("987654321...").is_err());
    }
}
