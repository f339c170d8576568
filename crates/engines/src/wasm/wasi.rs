//! The part of WASI (preview 1) that a program without files needs. Any other call of
//! its is missing, and a module that names one is refused.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::{Instant, SystemTime};

use wasmi::{Caller, Error, Extern, Linker, Memory};

use super::Program;

const MODULE: &str = "wasi_snapshot_preview1";

// WASI's error numbers.
const SUCCESS: i32 = 0;
const BADF: i32 = 8;
const FAULT: i32 = 21;
const IO: i32 = 29;

pub struct World {
    args: Vec<Vec<u8>>,
    started: Instant,
}

impl World {
    pub fn new(program: &Program) -> Self {
        let args = [&program.file].into_iter().chain(&program.args);
        // Each with the NUL that it ends with in the module's memory.
        let args = args.map(|arg| [arg.as_bytes(), b"\0"].concat());
        Self {
            args: args.collect(),
            started: Instant::now(),
        }
    }
}

type Host<'a> = Caller<'a, World>;

pub fn define(linker: &mut Linker<World>) -> Result<(), Error> {
    linker.func_wrap(MODULE, "proc_exit", |code: i32| -> Result<(), Error> {
        Err(Error::i32_exit(code))
    })?;
    linker.func_wrap(
        MODULE,
        "fd_write",
        |host: Host<'_>, fd: i32, list: i32, count: i32, done: i32| {
            answer(fd_write(host, fd, list, count, done))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "fd_read",
        |host: Host<'_>, fd: i32, list: i32, count: i32, done: i32| {
            answer(fd_read(host, fd, list, count, done))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "args_sizes_get",
        |host: Host<'_>, count: i32, size: i32| {
            let args = &host.data().args;
            let (number, bytes) = (args.len(), args.iter().map(Vec::len).sum::<usize>());
            answer(put_words(
                host,
                &[(count, number as u32), (size, bytes as u32)],
            ))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "args_get",
        |host: Host<'_>, list: i32, bytes: i32| answer(args_get(host, list, bytes)),
    )?;
    linker.func_wrap(
        MODULE,
        "environ_sizes_get",
        |host: Host<'_>, count: i32, size: i32| answer(put_words(host, &[(count, 0), (size, 0)])),
    )?;
    linker.func_wrap(MODULE, "environ_get", |_: i32, _: i32| SUCCESS)?;
    linker.func_wrap(MODULE, "fd_close", |_: i32| SUCCESS)?;
    linker.func_wrap(MODULE, "fd_seek", |_: i32, _: i64, _: i32, _: i32| BADF)?;
    linker.func_wrap(
        MODULE,
        "fd_fdstat_get",
        |host: Host<'_>, _: i32, to: i32| {
            // A character device that may do anything.
            let mut stat = [0xff; 24];
            stat[..8].copy_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
            answer(put(host, to, &stat))
        },
    )?;
    linker.func_wrap(MODULE, "fd_prestat_get", |_: i32, _: i32| BADF)?;
    linker.func_wrap(MODULE, "fd_prestat_dir_name", |_: i32, _: i32, _: i32| BADF)?;
    linker.func_wrap(MODULE, "sched_yield", || SUCCESS)?;
    linker.func_wrap(
        MODULE,
        "clock_time_get",
        |host: Host<'_>, clock: i32, _: i64, to: i32| {
            let wall = || {
                SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default()
            };
            let time = if clock == 0 {
                wall()
            } else {
                host.data().started.elapsed()
            };
            answer(put(host, to, &(time.as_nanos() as u64).to_le_bytes()))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "random_get",
        |host: Host<'_>, to: i32, size: i32| {
            let mut bytes = vec![0; size.clamp(0, 1 << 20) as usize];
            let filled =
                File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
            answer(filled.map_err(|_| IO).and_then(|()| put(host, to, &bytes)))
        },
    )?;
    Ok(())
}

/// What a call answers: WASI's number for how it went.
fn answer(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(SUCCESS)
}

fn memory(host: &Host<'_>) -> Result<Memory, i32> {
    host.get_export("memory")
        .and_then(Extern::into_memory)
        .ok_or(FAULT)
}

fn put(mut host: Host<'_>, to: i32, bytes: &[u8]) -> Result<(), i32> {
    let memory = memory(&host)?;
    memory
        .write(&mut host, to as u32 as usize, bytes)
        .map_err(|_| FAULT)
}

fn put_words(mut host: Host<'_>, words: &[(i32, u32)]) -> Result<(), i32> {
    let memory = memory(&host)?;
    for (to, word) in words {
        let written = memory.write(&mut host, *to as u32 as usize, &word.to_le_bytes());
        written.map_err(|_| FAULT)?;
    }
    Ok(())
}

fn args_get(mut host: Host<'_>, list: i32, bytes: i32) -> Result<(), i32> {
    let memory = memory(&host)?;
    let args = host.data().args.clone();
    let (mut list, mut to) = (list as u32, bytes as u32);
    for arg in args {
        let pointed = memory.write(&mut host, list as usize, &to.to_le_bytes());
        pointed
            .and_then(|()| memory.write(&mut host, to as usize, &arg))
            .map_err(|_| FAULT)?;
        list = list.wrapping_add(4);
        to = to.wrapping_add(arg.len() as u32);
    }
    Ok(())
}

/// The pieces of memory that a list names, each as where and how long. Not yet checked.
fn pieces(host: &Host<'_>, list: i32, count: i32) -> Result<Vec<(usize, usize)>, i32> {
    let memory = memory(host)?;
    let word = |at: usize| -> Result<usize, i32> {
        let mut word = [0; 4];
        memory.read(host, at, &mut word).map_err(|_| FAULT)?;
        Ok(u32::from_le_bytes(word) as usize)
    };
    // A module's memory bounds the list: reading past its end fails.
    let starts = (0..count.max(0) as usize).map(|at| list as u32 as usize + at * 8);
    starts.map(|at| Ok((word(at)?, word(at + 4)?))).collect()
}

fn fd_write(host: Host<'_>, fd: i32, list: i32, count: i32, done: i32) -> Result<(), i32> {
    let memory = memory(&host)?;
    let mut bytes = Vec::new();
    for (start, length) in pieces(&host, list, count)? {
        let piece = start
            .checked_add(length)
            .and_then(|end| memory.data(&host).get(start..end));
        bytes.extend_from_slice(piece.ok_or(FAULT)?);
    }
    let written = match fd {
        1 => {
            let mut out = io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush())
        }
        2 => io::stderr().write_all(&bytes),
        _ => return Err(BADF),
    };
    written.map_err(|_| IO)?;
    put_words(host, &[(done, bytes.len() as u32)])
}

fn fd_read(mut host: Host<'_>, fd: i32, list: i32, count: i32, done: i32) -> Result<(), i32> {
    if fd != 0 {
        return Err(BADF);
    }
    let memory = memory(&host)?;
    let mut total = 0;
    for (start, length) in pieces(&host, list, count)? {
        let end = start.checked_add(length).ok_or(FAULT)?;
        let piece = memory
            .data_mut(&mut host)
            .get_mut(start..end)
            .ok_or(FAULT)?;
        let read = io::stdin().lock().read(piece).map_err(|_| IO)?;
        total += read;
        if read < length {
            break;
        }
    }
    put_words(host, &[(done, total as u32)])
}
