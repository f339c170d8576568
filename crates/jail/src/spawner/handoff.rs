//! How a spawner goes on as a runtime that makes cells of itself.
//!
//! The spawner has built its root and moved in. It lays the runtime's own view of
//! the trees there, writes down what it knows, and execs the runtime with our
//! library in front of its libc; [`receive`] takes up the work inside of it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::mount_bind_recursive;
use rustix::pipe::{PipeFlags, pipe_with};

use super::root::Root;
use super::wait::{describe, environment};
use super::{Spawner, Successor};
use crate::error::{Failed, step};
use crate::spec::codec::{Writer, garbled, read_memory_file};
use crate::sys;

#[cfg(feature = "zygote")]
pub use inside::{Place, Task, receive};

const LIBRARY: &str = "/zygote.so";
pub const WORKSPACE: &str = "/workspace";

/// Becomes the runtime. Returns only if that failed.
pub fn exec(spawner: &Spawner, control: &OwnedFd, successor: &Successor) -> Failed {
    let zygote = &successor.zygote;
    let prepared = step("preparing the zygote's root", || {
        furnish(&spawner.root, &zygote.script, &successor.library)
    });
    let started = prepared.and_then(|()| {
        let task = step("writing the zygote's task", || {
            write(spawner, control, successor)
        })?;
        step("setting the zygote's streams", || {
            // Its cells have its signals too, and not those that our starter ignored.
            sys::reset_signals()?;
            take_streams(zygote.has_input)
        })?;
        step("starting the zygote", || {
            let argv = super::init::c_strings(&zygote.argv)?;
            let env = environment(&zygote.env, LIBRARY, task)?;
            let path = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
            Err(sys::exec(path, &argv, &env))
        })
    });
    match started {
        Ok(never) => never,
        Err(failed) => failed,
    }
}

/// Shows the trees at the places where cells see them: paths of what the runtime has
/// mapped are told by this root for ever.
fn furnish(root: &Root, script: &OsString, library: &OwnedFd) -> io::Result<()> {
    for entry in fs::read_dir("/cell")? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            symlink(
                fs::read_link(entry.path())?,
                Path::new("/").join(entry.file_name()),
            )?;
        }
    }
    symlink("cell/etc", "/etc")?;
    symlink("cell/dev", "/dev")?;
    for tree in &root.trees {
        let place = tree.target.strip_prefix("/cell").map_err(|_| garbled())?;
        let place = Path::new("/").join(place);
        fs::create_dir_all(&place)?;
        mount_bind_recursive(Path::new("/host").join(&tree.name), &place)?;
    }
    // The runtime asks where its program lies before it opens it.
    fs::create_dir_all(WORKSPACE)?;
    fs::write(Path::new(WORKSPACE).join(script), "")?;
    fs::write(LIBRARY, read_memory_file(library.try_clone()?)?)?;
    fs::set_permissions(LIBRARY, fs::Permissions::from_mode(0o755))?;
    Ok(rustix::process::chdir(WORKSPACE)?)
}

/// Streams of the kinds that its cells have: the runtime looks at them once.
fn take_streams(has_input: bool) -> io::Result<()> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    match has_input {
        true => sys::dup_as(reader.as_fd(), 0)?,
        false => sys::dup_as(fs::File::open("/dev/null")?.as_fd(), 0)?,
    }
    sys::dup_as(writer.as_fd(), 1)?;
    sys::dup_as(writer.as_fd(), 2)?;
    // With nobody at its other end a pipe would answer with a signal.
    sys::keep_on_exec(reader.as_fd())?;
    std::mem::forget(reader);
    Ok(())
}

fn write(spawner: &Spawner, control: &OwnedFd, successor: &Successor) -> io::Result<RawFd> {
    let mut out = Writer::new();
    describe(&mut out, &successor.zygote);
    let root = &spawner.root;
    for fd in [control, &root.host_proc, &root.lifeline, &root.alive] {
        pass(&mut out, fd)?;
    }
    out.number(spawner.networks.contains_key(&0).into());
    if let Some(network) = spawner.networks.get(&0) {
        pass(&mut out, network)?;
    }
    let is_laid = root.overlaid.get(&0).is_some_and(Result::is_ok);
    out.number(is_laid.into());
    out.number(spawner.has_range.into());
    out.number(spawner.filters.grouped.into());
    out.number(spawner.missing.len() as u64);
    spawner
        .missing
        .iter()
        .for_each(|missing| missing.write(&mut out));
    out.number(root.trees.len() as u64);
    for tree in &root.trees {
        out.bytes(tree.name.as_bytes());
        out.bytes(tree.target.as_os_str().as_bytes());
    }
    out.number(root.mounts.len() as u64);
    for mount in &root.mounts {
        out.bytes(mount.name.as_bytes());
        out.bytes(mount.target.as_os_str().as_bytes());
        mount.access.write(&mut out);
    }
    out.number(root.masks.len() as u64);
    for mask in &root.masks {
        out.bytes(mask.source.as_os_str().as_bytes());
        out.bytes(mask.target.as_os_str().as_bytes());
    }
    out.bytes(root.processor.as_bytes());
    out.bytes(root.kernel.as_bytes());
    let task = out.into_memory_file()?;
    sys::keep_on_exec(task.as_fd())?;
    let number = task.as_raw_fd();
    std::mem::forget(task);
    Ok(number)
}

/// Leaves a copy of `fd` open for the runtime, above its standard streams.
fn pass(out: &mut Writer, fd: &OwnedFd) -> io::Result<()> {
    let copy = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
    sys::keep_on_exec(copy.as_fd())?;
    out.number(copy.as_raw_fd() as u64);
    std::mem::forget(copy);
    Ok(())
}

/// The other side, in the runtime.
#[cfg(feature = "zygote")]
mod inside {
    use std::collections::HashMap;

    use super::super::masks::Mask;
    use super::super::root::{Granted, Shown};
    use super::*;
    use crate::init::Filters;
    use crate::policy::Access;
    use crate::spec::Missing;
    use crate::spec::codec::Reader;

    /// What the library finds when it looks at its task.
    pub struct Task {
        pub place: Place,
        pub env: Vec<OsString>,
        /// The program's name in the workspace.
        pub script: OsString,
        pub first: String,
        pub warm: String,
        pub fork: String,
        pub leave: String,
    }

    /// Where the runtime was started.
    pub enum Place {
        /// In a spawner's stead: it makes cells of itself.
        Zygote(Box<Spawner>, OwnedFd),
        /// In a cell, with these walls, whose server waits to hear of it.
        Cell {
            status: OwnedFd,
            landlock: u8,
            seccomp: bool,
        },
    }

    /// Takes the task that `descriptor` holds, in the runtime.
    #[cfg_attr(
        not(feature = "zygote"),
        expect(dead_code, reason = "the library's part")
    )]
    pub fn receive(descriptor: RawFd) -> io::Result<Task> {
        let bytes = read_memory_file(sys::take_descriptor(descriptor)?)?;
        let mut input = Reader::new(&bytes)?;
        let fresh = input.number()? == 1;
        let task = Task {
            env: input.list(Reader::text)?,
            script: input.text()?,
            first: input.string()?,
            warm: input.string()?,
            fork: input.string()?,
            leave: input.string()?,
            place: if fresh {
                Place::Cell {
                    status: take(&mut input)?,
                    landlock: u8::try_from(input.number()?).map_err(|_| garbled())?,
                    seccomp: input.number()? == 1,
                }
            } else {
                let (spawner, control) = receive_spawner(&mut input)?;
                Place::Zygote(Box::new(spawner), control)
            },
        };
        input.end()?;
        Ok(task)
    }

    fn receive_spawner(input: &mut Reader<'_>) -> io::Result<(Spawner, OwnedFd)> {
        let mut fds = Vec::new();
        for _ in 0..4 {
            fds.push(take(input)?);
        }
        let [control, host_proc, lifeline, alive] = fds.try_into().map_err(|_| garbled())?;
        let mut networks = HashMap::new();
        if input.number()? == 1 {
            networks.insert(0, take(input)?);
        }
        let is_laid = input.number()? == 1;
        let has_range = input.number()? == 1;
        let filters = Filters::new(input.number()? == 1);
        let missing = input.list(Missing::read)?;
        let root = Root {
            at: Path::new("/"),
            host_proc,
            lifeline,
            alive,
            trees: input.list(|input| {
                Ok(Shown {
                    name: input.string()?,
                    target: input.text()?.into(),
                })
            })?,
            mounts: input.list(|input| {
                Ok(Granted {
                    name: input.string()?,
                    target: input.text()?.into(),
                    access: Access::read(input)?,
                })
            })?,
            overlaid: is_laid.then_some((0, Ok(()))).into_iter().collect(),
            masks: input.list(|input| {
                Ok(Mask {
                    source: input.text()?.into(),
                    target: input.text()?.into(),
                })
            })?,
            // A zygote's cells go on with its own image.
            engine: None,
            processor: input.string()?,
            kernel: input.string()?,
            facts: HashMap::new(),
        };
        let spawner = Spawner {
            hooks: None,
            runtime: None,
            root,
            filters,
            has_range,
            networks,
            mounts: HashMap::new(),
            inside: 0,
            missing,
        };
        Ok((spawner, control))
    }

    fn take(input: &mut Reader<'_>) -> io::Result<OwnedFd> {
        let number = RawFd::try_from(input.number()?).map_err(|_| garbled())?;
        let fd = sys::take_descriptor(number)?;
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
        Ok(fd)
    }
}
