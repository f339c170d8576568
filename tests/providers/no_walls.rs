//! hotcell with another provider of cells: plain child processes without any wall, for tests alone.
//!
//! Everything above `hotcell::cell` is the program's own, so what passes here shows that it needs nothing of the jail. A cell is a process
//! group, its workspace a folder for temporary files that ends with it.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use hotcell::caller::Caller;
use hotcell::cell::{
    Boxed, Cell, CellError, Changes, Channel, Event, Exit, Isolation, Launch, Level, Provider,
    Requirement, Start, Streams, Usage, View, WantedChanges, Workspace, changes,
};
use hotcell::engine::Engine;
use hotcell::language::Surroundings;
use hotcell::request::{CellPath, FileSource, InputFile};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::sync::oneshot;

fn main() -> ExitCode {
    let engine = Engine::with_provider(Surroundings::from_env(), NoWalls);
    hotcell::cli::main_with(Some(engine))
}

struct NoWalls;

impl Provider for NoWalls {
    fn start<'a>(&'a self, start: Start<'a>) -> Boxed<'a, Result<Box<dyn Cell>, CellError>> {
        Box::pin(async move {
            let cell: Box<dyn Cell> = Box::new(Process::start(start).map_err(CellError::Pipe)?);
            Ok(cell)
        })
    }

    fn prestart(&self, _: &Launch, _: Requirement, _: &Caller) -> Result<(), CellError> {
        Ok(())
    }

    fn prepare(&self, _: &View) -> Result<(), CellError> {
        Ok(())
    }

    fn settle(&self) {}
}

struct Process {
    group: Pid,
    workspace: TempDir,
    streams: Option<Streams>,
    channel: Option<Channel>,
    exit: oneshot::Receiver<Exit>,
    isolation: Isolation,
}

impl Process {
    fn start(start: Start<'_>) -> io::Result<Self> {
        let Launch {
            argv, env, view, ..
        } = start.launch;
        let workspace = TempDir::new()?;
        if let Some(files) = start.launch.share.as_ref().and_then(|it| it.files.as_ref()) {
            let own = std::fs::File::open(workspace.path())?;
            Workspace::new(own.into(), None).carry(files);
        }
        for file in &start.launch.files {
            write(workspace.path(), file)?;
        }
        let channel = start.launch.channel.then(|| channel(workspace.path()));
        let (streams, [stdin, stdout, stderr]) = Streams::make(start.has_input)?;
        let here = workspace.path().to_string_lossy();
        let inside = |text: &String| text.replace("/workspace", &here);
        let mut child = Command::new(on_host(&argv[0], view))
            .args(argv[1..].iter().map(inside))
            .env_clear()
            .envs(env.iter().map(|(name, value)| (name, inside(value))))
            .current_dir(workspace.path())
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr))
            .process_group(0)
            .spawn()?;
        let group = Pid::from_child(&child);
        let (ended, exit) = oneshot::channel();
        std::thread::spawn(move || {
            let status = child.wait().map_or(0, ExitStatusExt::into_raw);
            let _ = ended.send(Exit {
                status,
                cpu_micros: 0,
                max_rss: 0,
                // Nobody has counted them.
                left: 1,
            });
        });
        Ok(Self {
            group,
            workspace,
            streams: Some(streams),
            channel: channel.transpose()?,
            exit,
            isolation: Isolation {
                provider: "none",
                level: Level::Reduced,
                walls: [].into(),
            },
        })
    }
}

/// Where a runtime that cells see at a path of their own is on the host.
fn on_host(program: &str, view: &View) -> PathBuf {
    let shown = |tree: &hotcell::cell::Tree| {
        let inside = Path::new(program).strip_prefix(&tree.cell).ok()?;
        Some(tree.host.join(inside))
    };
    let found = view.trees.iter().find_map(shown);
    found.unwrap_or_else(|| program.into())
}

fn write(workspace: &Path, file: &InputFile) -> io::Result<()> {
    let path = workspace.join(file.path.as_str());
    std::fs::create_dir_all(path.parent().unwrap_or(workspace))?;
    match &file.source {
        FileSource::Bytes(bytes) => {
            // A later call of a session may bring it again.
            let _ = std::fs::remove_file(&path);
            let mut options = std::fs::OpenOptions::new();
            let options = options.write(true).create_new(true).mode(file.mode);
            options.open(path)?.write_all(bytes)
        }
        FileSource::Kept(kept) => kept.copy_to(&mut std::fs::File::create(path)?),
        FileSource::HostFile(from) => std::fs::copy(from, path).map(drop),
        FileSource::EmptyFolder => std::fs::create_dir_all(path),
        FileSource::Link(to) => std::os::unix::fs::symlink(to, path),
        FileSource::HostFolder(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn channel(workspace: &Path) -> io::Result<Channel> {
    let folder = workspace.join(".home/.hotcell");
    std::fs::create_dir_all(&folder)?;
    let fifo = |name: &str| -> io::Result<OwnedFd> {
        let (path, mode) = (folder.join(name), Mode::from_raw_mode(0o600));
        mknodat(CWD, &path, FileType::Fifo, mode, 0)?;
        Ok(open(path, OFlags::RDWR | OFlags::CLOEXEC, mode)?)
    };
    Channel::new(fifo("calls")?, fifo("answers")?)
}

impl Cell for Process {
    fn take_streams(&mut self) -> Option<Streams> {
        self.streams.take()
    }

    fn next_event(&mut self) -> Boxed<'_, Result<Event, CellError>> {
        Box::pin(async {
            let exit = (&mut self.exit).await;
            Ok(exit.map_or(Event::Gone, Event::Exited))
        })
    }

    fn place<'a>(&'a self, files: &'a [InputFile]) -> Boxed<'a, Result<(), CellError>> {
        let mut files = files.iter();
        let placed = files.try_for_each(|file| write(self.workspace.path(), file));
        Box::pin(async { placed.map_err(CellError::Collect) })
    }

    fn collect<'a>(
        &'a self,
        folder: &'a CellPath,
        _: u64,
    ) -> Boxed<'a, io::Result<Vec<InputFile>>> {
        Box::pin(async move {
            let read = |entry: io::Result<std::fs::DirEntry>| {
                let path = entry?.path();
                let inside = path.strip_prefix(self.workspace.path());
                let inside = inside.map_err(io::Error::other)?.to_string_lossy();
                let inside = CellPath::parse(&inside).map_err(io::Error::other)?;
                Ok(InputFile {
                    mode: 0o755,
                    ..InputFile::from_bytes(inside, std::fs::read(path)?)
                })
            };
            let folder = self.workspace.path().join(folder.as_str());
            std::fs::read_dir(folder)?.map(read).collect()
        })
    }

    fn export<'a>(&'a self, _: &'a CellPath, _: &'a Path, _: u64) -> Boxed<'a, io::Result<u64>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    fn changes<'a>(
        &'a self,
        placed: &'a [InputFile],
        wanted: &'a WantedChanges,
    ) -> Boxed<'a, io::Result<Changes>> {
        Box::pin(async move {
            let workspace = std::fs::File::open(self.workspace.path())?;
            Ok(changes(workspace.as_fd(), placed, wanted))
        })
    }

    fn workspace(&self) -> Option<Workspace> {
        let folder = std::fs::File::open(self.workspace.path()).ok()?;
        Some(Workspace::new(folder.into(), None))
    }

    fn take_listener(&mut self) -> Option<OwnedFd> {
        None
    }

    fn take_channel(&mut self) -> Option<Channel> {
        self.channel.take()
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// Never done: whatever takes long here, a program ends at its time and when it ends by itself.
    fn look(&self, _: u64) -> Boxed<'static, Usage> {
        Box::pin(std::future::pending())
    }

    fn freeze(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::STOP)?)
    }

    fn thaw(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::CONT)?)
    }

    fn interrupt(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::INT)?)
    }

    fn kill(&self) {
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
