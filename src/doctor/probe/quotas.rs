//! Taking all that a sandbox may have of something, until it is refused.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::{number, say};
use crate::doctor::question::{Fact, Quota};

/// Descriptors for locks: a sandbox may open a thousand files.
const MOST_LOCKS: usize = 400;
/// Far more than a sandbox may have of anything that is counted here.
pub const MOST: u64 = 40_000;
/// A user may have 64 by default.
const MOST_PIPES: u64 = 100;
const MIB: usize = 1 << 20;

/// Locks what it sees, takes all inotify instances and watches, and stays until it is ended.
pub fn hoard(most: u64) -> ExitCode {
    let (paths, _locks): (Vec<String>, Vec<File>) = seen().into_iter().unzip();
    let mut queues: Vec<OwnedFd> = Vec::new();
    took(Quota::InotifyInstances, most, || {
        queues.push(inotify::init(CreateFlags::CLOEXEC)?);
        Ok(())
    });
    // Each watch is of another file, or of another queue.
    let mut count = 0;
    took(Quota::InotifyWatches, most, || {
        let path = format!("/tmp/{}", count / queues.len().max(1));
        if !Path::new(&path).exists() {
            File::create(&path)?;
        }
        let queue = queues.get(count % queues.len().max(1));
        let queue = queue.ok_or(io::ErrorKind::NotFound)?;
        inotify::add_watch(queue, &path, WatchFlags::OPEN)?;
        count += 1;
        Ok(())
    });
    let mut pipes = Vec::new();
    took(Quota::Pipes, most.min(MOST_PIPES), || {
        pipes.push(large_pipe()?);
        Ok(())
    });
    // Last: whoever hears it knows that all is taken.
    say(&Fact::Holds(paths));
    loop {
        std::thread::park();
    }
}

/// A pipe with room for a MiB, and its other end.
fn large_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setpipe_size(&writer, MIB)?;
    Ok((reader, writer))
}

/// A watch of our own, which takes an instance too, and a pipe are left for us whatever our neighbours have taken.
pub fn take_one() {
    took(Quota::Pipes, 1, || large_pipe().map(drop));
    let watch = || -> io::Result<()> {
        let queue = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(&queue, "/tmp", WatchFlags::OPEN)?;
        Ok(())
    };
    let errno = watch().err().map(|error| number(&error));
    say(&Fact::Took {
        quota: Quota::InotifyWatches,
        count: u64::from(errno.is_none()),
        errno,
    });
}

/// Fills the file systems that can be written, opens what it can, and ends by writing a file that is too large.
pub fn fill() -> ExitCode {
    let mut open = Vec::new();
    took(Quota::OpenFiles, MOST, || {
        open.push(File::open("/")?);
        Ok(())
    });
    drop(open);
    let piece = vec![1; MIB];
    for (folder, bytes, files) in [
        ("/workspace", Quota::Workspace, Quota::WorkspaceFiles),
        ("/tmp", Quota::Tmp, Quota::TmpFiles),
        ("/dev/shm", Quota::Shm, Quota::ShmFiles),
    ] {
        let mut made = Vec::new();
        took(bytes, MOST, || {
            let path = format!("{folder}/filled-{}", made.len());
            let mut file = File::create(&path)?;
            made.push(path);
            file.write_all(&piece)
        });
        took(files, MOST, || {
            let path = format!("{folder}/file-{}", made.len());
            File::create_new(&path)?;
            made.push(path);
            Ok(())
        });
        // Only what is not there can be written at its place.
        made.iter().for_each(|path| drop(fs::remove_file(path)));
    }
    // The kernel's signal for this is not handled: it is the probe's end.
    let large = File::create("/tmp/large").and_then(|file| file.set_len(1 << 40));
    match large {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn took(quota: Quota, most: u64, mut take: impl FnMut() -> io::Result<()>) {
    let mut count = 0;
    let mut errno = None;
    while errno.is_none() && count < most {
        match take() {
            Ok(()) => count += 1,
            Err(error) => errno = Some(number(&error)),
        }
    }
    say(&Fact::Took {
        quota,
        count,
        errno,
    });
}

/// What a sandbox sees, each inode once: devices, where something is mounted, and files of /etc; with a lock that others may have too.
fn seen() -> Vec<(String, File)> {
    let mut paths = Vec::new();
    list("/dev", 1, &mut paths);
    for path in ["/", "/usr", "/usr/bin", "/usr/bin/env", "/proc/self/exe"] {
        paths.push(path.to_owned());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    paths.extend(mounts.map(str::to_owned));
    list("/etc", 3, &mut paths);
    let mut inodes = HashSet::new();
    let mut locked = Vec::new();
    for path in paths {
        let Some(file) = open(&path) else {
            continue;
        };
        let is_new = file
            .metadata()
            .is_ok_and(|found| inodes.insert((found.dev(), found.ino())));
        if is_new
            && locked.len() < MOST_LOCKS
            && flock(&file, FlockOperation::NonBlockingLockShared).is_ok()
        {
            locked.push((path, file));
        }
    }
    locked
}

fn list(folder: &str, depth: usize, paths: &mut Vec<String>) {
    paths.push(folder.to_owned());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path().to_string_lossy().into_owned();
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true if depth > 1 => list(&path, depth - 1, paths),
            _ => paths.push(path),
        }
    }
}

/// Opens a file or a folder to lock it; never waits for whoever is at its other end.
pub fn open(path: impl AsRef<Path>) -> Option<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let options = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path);
    options.ok()
}
