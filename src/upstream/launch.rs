//! Starting a server: a program of the owner's, on the host, as the owner.
//!
//! It is started by our own binary, which sees to it that the program does not outlive us and then becomes it: the
//! server process itself never forks.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, kill_process_group, pidfd_open,
    set_parent_process_death_signal, setrlimit,
};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::config::Program;

/// The name by which our binary knows that it is to become a server.
pub const LAUNCHER: &str = "hotcell-server";
/// Tells a server that it was started by us. If it is hotcell too it starts no servers of its own: it may be its own.
const STARTED_BY_US: &str = "HOTCELL_UPSTREAM";
/// How long a server may take to end by itself, and then when it is asked to.
const GRACE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// A server that runs. It is ended when this is dropped.
pub struct Process {
    pub input: pipe::Sender,
    pub output: pipe::Receiver,
    pub life: Life,
}

/// What keeps a server running.
pub struct Life(#[expect(dead_code, reason = "its end is the message")] mpsc::Sender<()>);

/// What a server says on its standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerStderr {
    /// Nobody sees it: it may be anything, and our own is read by others.
    #[default]
    Dropped,
    Shown,
}

/// Whether this process is itself a server that hotcell has started.
pub fn is_upstream() -> bool {
    std::env::var_os(STARTED_BY_US).is_some()
}

/// Starts a server, or says why not.
pub async fn start(program: &Program, stderr: ServerStderr) -> Result<Process, String> {
    if let Some(folder) = &program.folder
        && !folder.is_dir()
    {
        // Not which: this is told to programs too.
        return Err("its folder (`cwd`) does not exist".to_owned());
    }
    if !is_there(program) {
        return Err("its program (`command`) was not found".to_owned());
    }
    let started = spawn(program, stderr).await;
    started.map_err(|error| format!("it cannot be started: {error}"))
}

/// Whether there is a file of its name, where the launcher will look for it.
fn is_there(program: &Program) -> bool {
    let name = Path::new(&program.command[0]);
    let folder = program.folder.as_deref().unwrap_or(Path::new(""));
    if name.components().nth(1).is_some() {
        return folder.join(name).is_file();
    }
    let path = program.env.get("PATH").map(|it| it.reveal());
    std::env::split_paths(path.unwrap_or("/usr/local/bin:/bin:/usr/bin"))
        .any(|it| folder.join(it).join(name).is_file())
}

async fn spawn(program: &Program, stderr: ServerStderr) -> io::Result<Process> {
    let (theirs_in, input) = pipe_with(PipeFlags::CLOEXEC)?;
    let (output, theirs_out) = pipe_with(PipeFlags::CLOEXEC)?;
    let folder = program.folder.clone().unwrap_or_default();
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(LAUNCHER)
        .arg(folder)
        .args(&program.command)
        .env_clear()
        .stdin(theirs_in)
        .stdout(theirs_out)
        .stderr(match stderr {
            ServerStderr::Dropped => Stdio::null(),
            ServerStderr::Shown => Stdio::inherit(),
        })
        .process_group(0);
    for (name, value) in &program.env {
        command.env(name, value.reveal());
    }
    command.env(STARTED_BY_US, "1");
    let (started, wait) = oneshot::channel();
    let (life, ended) = mpsc::channel::<()>();
    // The signal at a parent's death follows the thread that was the parent, so this one stays.
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            let spawned = command.spawn();
            // Our copies of its ends.
            drop(command);
            match spawned {
                Ok(mut child) => {
                    let _ = started.send(Ok(()));
                    let _ = ended.recv();
                    end(&mut child);
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            }
        })?;
    wait.await
        .unwrap_or_else(|_| Err(io::Error::other("its thread is gone")))?;
    Ok(Process {
        input: pipe::Sender::from_owned_fd(input)?,
        output: pipe::Receiver::from_owned_fd(output)?,
        life: Life(life),
    })
}

/// Its input is closed already; one that does not end by that is asked to, and then made to.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = group.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    for signal in [Signal::TERM, Signal::KILL] {
        if let Some(process) = &process {
            let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&GRACE));
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    }
    let _ = child.wait();
}

/// Becomes the server: the first argument is its folder, the others its command.
pub fn launch(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let folder = words.next().unwrap_or_default();
    let Some(program) = words.next() else {
        return ExitCode::FAILURE;
    };
    // Ours may be higher. Programs that use `select` cannot have more.
    let ours = getrlimit(Resource::Nofile);
    let current = ours.current.map(|it| it.min(1024));
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..ours });
    let ready = set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from);
    let entered = match folder.is_empty() {
        true => Ok(()),
        false => std::env::set_current_dir(&folder),
    };
    let error = match (ready, entered) {
        (Ok(()), Ok(())) => Command::new(&program).args(words).exec(),
        (_, Err(error)) => {
            eprintln!("hotcell: cannot enter `{}`: {error}", folder.display());
            return ExitCode::from(127);
        }
        (Err(error), _) => error,
    };
    eprintln!("hotcell: cannot start `{}`: {error}", program.display());
    ExitCode::from(127)
}
