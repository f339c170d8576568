//! How a runtime is started with our library in front of its libc, so that nothing
//! shows it; and how that is done in a cell, whose runtime waits there.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags};

use super::Successor;
use crate::init::c_strings;
use crate::policy::Zygote;
use crate::spec::codec::Writer;
use crate::sys;

/// The variable that tells our library which descriptor holds its task.
pub const TASK: &str = "HOTCELL_ZYGOTE";
/// Ends the number there.
pub const FILLER: char = '.';

/// Above all that a runtime opens before it comes to its program, and below the limit.
pub const HIGH: RawFd = 1000;

/// Writes down what the library has to know, before a filter forbids memory files.
pub fn prepare(successor: &Successor, status: &OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    // Some ask where their program lies before they wait. It is taken away again then.
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::open(&*successor.zygote.script, flags, mode)?;
    let status = keep_high(status)?;
    let mut out = Writer::new();
    describe(&mut out, &successor.zygote);
    out.number(status.as_raw_fd() as u64);
    Ok((keep_high(&out.into_memory_file()?)?, status))
}

/// Becomes the runtime, which says by itself that the walls stand and waits for the
/// word to go. Returns only if that failed. `task` is what was prepared.
pub fn exec(successor: &Successor, task: &OwnedFd, landlock: u8, seccomp: bool) -> io::Result<()> {
    let zygote = &successor.zygote;
    let argv = c_strings(&zygote.argv)?;
    let library = keep_high(&successor.library)?;
    let mut walls = Vec::new();
    for wall in [landlock.into(), seccomp.into()] {
        walls.extend_from_slice(&u64::to_le_bytes(wall));
    }
    rustix::io::write(task, &walls)?;
    let library = format!("/proc/self/fd/{}", library.as_raw_fd());
    let env = environment(&zygote.env, &library, task.as_raw_fd())?;
    let path = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    Err(sys::exec(path, &argv, &env))
}

/// A copy that lives across an exec.
fn keep_high(fd: &OwnedFd) -> io::Result<OwnedFd> {
    let copy = rustix::io::fcntl_dupfd_cloexec(fd, HIGH)?;
    sys::keep_on_exec(copy.as_fd())?;
    Ok(copy)
}

/// What the library has to know in any case.
pub fn describe(out: &mut Writer, zygote: &Zygote) {
    out.number(zygote.fresh.into());
    out.texts(&zygote.env);
    out.bytes(zygote.script.as_bytes());
    out.bytes(zygote.first.as_bytes());
    out.bytes(zygote.warm.as_bytes());
    out.bytes(zygote.fork.as_bytes());
    out.bytes(zygote.leave.as_bytes());
}

/// An environment that has `library` loaded and takes up exactly the room of `real`.
///
/// /proc shows the memory that a process was given its environment in for ever, whatever
/// is there. So the library writes the real one over it before the runtime looks.
pub fn environment(real: &[OsString], library: &str, task: RawFd) -> io::Result<Vec<CString>> {
    let mut ours = vec![
        OsString::from(format!("LD_PRELOAD={library}")),
        OsString::from(format!("{TASK}={task}")),
    ];
    // The dynamic linker reads these before the library is there.
    let linkers = real.iter().filter(|it| it.as_bytes().starts_with(b"LD_"));
    ours.extend(linkers.cloned());
    if ours.len() > real.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    ours.resize(real.len(), OsString::new());
    let room = |list: &[OsString]| list.iter().map(|it| it.len() + 1).sum::<usize>();
    let rest = room(real).checked_sub(room(&ours));
    let rest = rest.ok_or(io::ErrorKind::InvalidInput)?;
    ours[1].push(FILLER.to_string().repeat(rest));
    c_strings(&ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_loads_our_library_takes_up_the_room_of_the_real_one() {
        let real = [
            "HOME=/workspace/.home",
            "LANG=C.UTF-8",
            "LD_LIBRARY_PATH=/x",
            "PATH=/usr/local/bin:/usr/bin",
        ];
        let real = real.map(OsString::from);
        let ours = environment(&real, "/proc/self/fd/1001", 1002).expect("it fits");
        let room: usize = ours.iter().map(|it| it.as_bytes_with_nul().len()).sum();
        assert_eq!(ours.len(), real.len());
        assert_eq!(room, real.iter().map(|it| it.len() + 1).sum::<usize>());
        assert!(ours.contains(&c"LD_LIBRARY_PATH=/x".to_owned()));
        assert!(ours[1].to_bytes().starts_with(b"HOTCELL_ZYGOTE=1002."));
        environment(&real[..1], "/proc/self/fd/1001", 1002).expect_err("no room");
        environment(&real[1..3], "/proc/self/fd/1001", 1002).expect_err("no room");
    }
}
