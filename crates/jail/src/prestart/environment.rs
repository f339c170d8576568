//! The environment of a runtime that loads our library, so that nothing shows it.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;

use crate::init::c_strings;

/// The variable that tells the library which file descriptor holds its task.
pub const TASK: &str = "HOTCELL_ZYGOTE";
/// Fills that variable up behind the number.
pub const FILLER: char = '.';

/// An environment that has `library` loaded and takes up exactly the bytes of `real`.
///
/// /proc/PID/environ shows the memory in which a process was given its environment, for as
/// long as it lives. So the library writes the real one over it before the runtime looks.
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
    let size = |list: &[OsString]| list.iter().map(|it| it.len() + 1).sum::<usize>();
    let rest = size(real).checked_sub(size(&ours));
    let rest = rest.ok_or(io::ErrorKind::InvalidInput)?;
    ours[1].push(FILLER.to_string().repeat(rest));
    c_strings(&ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_loads_our_library_takes_up_as_much_memory_as_the_real_one() {
        let real = [
            "HOME=/workspace/.home",
            "LANG=C.UTF-8",
            "LD_LIBRARY_PATH=/x",
            "PATH=/usr/local/bin:/usr/bin",
        ];
        let real = real.map(OsString::from);
        let ours = environment(&real, "/proc/self/fd/1001", 1002).expect("it fits");
        let size: usize = ours.iter().map(|it| it.as_bytes_with_nul().len()).sum();
        assert_eq!(ours.len(), real.len());
        assert_eq!(size, real.iter().map(|it| it.len() + 1).sum::<usize>());
        assert!(ours.contains(&c"LD_LIBRARY_PATH=/x".to_owned()));
        assert!(ours[1].to_bytes().starts_with(b"HOTCELL_ZYGOTE=1002."));
        environment(&real[..1], "/proc/self/fd/1001", 1002).expect_err("no room");
        environment(&real[1..3], "/proc/self/fd/1001", 1002).expect_err("no room");
    }
}
