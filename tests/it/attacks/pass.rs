//! One pass of the suite: the real binary, started as one user, with a home of its
//! own. The same programs run as root and as an ordinary user, since the walls are
//! built in different ways.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::answer::{self, Answer};
use super::canary::{self, Canaries};
use super::served;
use super::witness::{self, MARK, Traces};
use crate::support::isolation;

/// How long past its time limit a run may take before we stop waiting for the server.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a program of the suite runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In a cell that `hotcell run` makes for it.
    New,
    /// In one of a server's, that waits for it with a started runtime.
    Pooled,
    /// In one that a server's zygote makes for it.
    Forked,
    /// In one that `hotcell run` makes for it behind other walls.
    Within(&'static str),
}

impl Way {
    /// Whether `hotcell run` makes the cell.
    pub fn is_command(self) -> bool {
        matches!(self, Self::New | Self::Within(_))
    }

    /// Whose walls they are, if not hotcell's own.
    pub fn isolation(self) -> Option<&'static str> {
        match self {
            Self::Within(isolation) => Some(isolation),
            _ => None,
        }
    }
}

/// The binary under test, started as one user.
pub struct Pass {
    pub name: &'static str,
    pub way: Way,
    pub uid: u32,
    /// Where `HOME` points; it holds credentials that no program may find.
    pub home: PathBuf,
    /// Holds one folder for each run's `TMPDIR`.
    temporary: PathBuf,
    secret: String,
    directory: TempDir,
    count: AtomicU32,
    /// The servers that were started.
    pub servers: Mutex<Vec<u32>>,
}

/// One program for the command line.
pub struct Run {
    pub language: &'static str,
    pub code: String,
    pub wall: Duration,
    /// Host file, name in the cell.
    pub files: Vec<(PathBuf, &'static str)>,
}

impl Pass {
    /// Root and an ordinary user, or the one we are.
    pub fn all(canaries: &Canaries, way: Way) -> Vec<Pass> {
        if let Way::Within(isolation) = way {
            return vec![Pass::new(isolation, way, 0, canaries)];
        }
        let [root, user] = match way {
            Way::Within(_) => unreachable!("it has one pass"),
            Way::New => ["root", "user"],
            Way::Pooled => ["pooled, root", "pooled, user"],
            Way::Forked => ["forked, root", "forked, user"],
        };
        match rustix::process::getuid().as_raw() {
            0 => vec![
                Pass::new(root, way, 0, canaries),
                Pass::new(user, way, ordinary_uid(), canaries),
            ],
            own => vec![Pass::new(user, way, own, canaries)],
        }
    }

    fn new(name: &'static str, way: Way, uid: u32, canaries: &Canaries) -> Pass {
        let directory = tempfile::tempdir().expect("a directory for the pass");
        let place = |name: &str| directory.path().join(name);
        // Everybody may look: what hides these files from a cell must be the cell.
        open_to_all(directory.path());
        for name in ["home", "tmp", "bin", canary::ARGUMENT] {
            fs::create_dir(place(name)).expect("its folders");
            open_to_all(&place(name));
        }
        fs::copy(env!("CARGO_BIN_EXE_hotcell"), place("bin/hotcell"))
            .expect("the binary can be copied");
        open_to_all(&place("bin/hotcell"));
        for folder in [directory.path(), &place(canary::ARGUMENT)] {
            fs::write(folder.join("input.txt"), "a file to place\n").expect("an input file");
        }
        credentials(&place("home"), &canaries.secret);
        let pass = Pass {
            name,
            way,
            uid,
            home: place("home"),
            temporary: place("tmp"),
            secret: canaries.secret.clone(),
            directory,
            count: AtomicU32::new(0),
            servers: Mutex::default(),
        };
        pass.give(&pass.home);
        pass
    }

    /// Runs a program and asks for the whole result as JSON.
    pub fn run(&self, run: &Run) -> Answer {
        if !self.way.is_command() {
            return served::run(self, run);
        }
        let arguments = [vec!["--json".to_owned()], self.arguments(run)].concat();
        self.call(&arguments, run.wall + PATIENCE)
    }

    /// Runs a program as a person at a shell does, with its output as it comes.
    pub fn stream(&self, run: &Run) -> Answer {
        self.call(&self.arguments(run), run.wall + PATIENCE)
    }

    /// Calls `hotcell run` with these arguments; past `limit` the server itself is
    /// killed and the answer has no exit code.
    pub fn call(&self, arguments: &[String], limit: Duration) -> Answer {
        let (mut command, traces) = self.command();
        command
            .arg("run")
            .args(isolation::arguments(self.way.isolation()))
            .arg(format!("--env={MARK}={}", traces.mark))
            .args(arguments)
            .stdin(Stdio::null());
        let start = Instant::now();
        let child = command.spawn().expect("the binary can be started");
        let server = child.id();
        self.servers.lock().expect("no driver panics").push(server);
        answer::wait(child, Traces { server, ..traces }, start, limit)
    }

    /// The binary, dressed for this pass, and what it will be known by.
    pub fn command(&self) -> (Command, Traces) {
        // A name of its own for each run's binary: a process that stays is known by it.
        let name = format!("hotcell-{}", self.next());
        let binary = self.directory.path().join("bin").join(&name);
        fs::hard_link(self.binary(), &binary).expect("the binary can be linked");
        let temporary = self.temporary.join(&name);
        fs::create_dir(&temporary).expect("a folder for temporary files");
        self.give(&temporary);
        let mark = canary::random();

        let mut command = Command::new(&binary);
        command.env("HOME", &self.home).env("TMPDIR", &temporary);
        command.env(canary::VARIABLE, &self.secret);
        if self.way.isolation().is_some() {
            command.env("PATH", isolation::path());
        }
        for name in [
            "XDG_RUNTIME_DIR",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
        ] {
            command.env_remove(name);
        }
        if rustix::process::getuid().is_root() && self.uid != 0 {
            command.uid(self.uid).gid(self.uid);
        }
        command
            .current_dir("/")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());

        let traces = Traces {
            mark,
            binary,
            temporary,
            is_within: self.way.isolation().is_some(),
            ..Traces::default()
        };
        (command, traces)
    }

    /// The copy of the binary that this pass runs.
    pub fn binary(&self) -> PathBuf {
        self.directory.path().join("bin/hotcell")
    }

    /// A file to place in a cell.
    pub fn input(&self) -> PathBuf {
        self.directory.path().join("input.txt")
    }

    /// A file to place whose path on the host no answer may contain.
    pub fn hidden_input(&self) -> PathBuf {
        self.directory
            .path()
            .join(canary::ARGUMENT)
            .join("input.txt")
    }

    /// The directory whose path no program may learn.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes the program down and names it and its limits.
    fn arguments(&self, run: &Run) -> Vec<String> {
        let extension = match run.language {
            "python" => "py",
            "javascript" => "js",
            _ => "sh",
        };
        let folder = self
            .directory
            .path()
            .join(canary::ARGUMENT)
            .join(self.next());
        fs::create_dir(&folder).expect("a folder for the program");
        let program = folder.join(format!("main.{extension}"));
        fs::write(&program, &run.code).expect("the program can be written");
        open_to_all(&folder);

        let mut arguments = vec![
            format!("--language={}", run.language),
            format!("--timeout={}ms", run.wall.as_millis()),
            "--env=SBX_STRICT=1".to_owned(),
        ];
        let files = run.files.iter();
        arguments.extend(files.map(|(host, cell)| format!("--file={}:{cell}", host.display())));
        arguments.push(program.display().to_string());
        arguments
    }

    /// Makes the pass's user the owner of a folder.
    fn give(&self, folder: &Path) {
        if rustix::process::getuid().is_root() {
            chown(folder, Some(self.uid), Some(self.uid)).expect("root can give a folder away");
        }
    }

    fn next(&self) -> String {
        self.count.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

/// The ordinary user: nobody, or whom `HOTCELL_WITH_IDS` names, for this suite with subordinate ids, by hand.
fn ordinary_uid() -> u32 {
    let named = std::env::var("HOTCELL_WITH_IDS").ok();
    let named = named.and_then(|uid| uid.parse().ok());
    named.unwrap_or_else(|| unused_uid(1700))
}

/// A user id that nobody has and under which nothing runs.
pub fn unused_uid(from: u32) -> u32 {
    let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let taken = |uid: &u32| {
        known
            .lines()
            .any(|line| line.split(':').nth(2) == Some(&uid.to_string()))
    };
    (from..)
        .find(|uid| !taken(uid) && witness::processes_of(*uid).is_empty())
        .expect("a free uid")
}

/// Lets every user read (and enter, or run) a file.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
}

/// The files that LEK-06 looks for, in the home of the server.
fn credentials(home: &Path, secret: &str) {
    for name in [
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".aws/credentials",
        ".ssh/id_rsa",
        ".config/gh/hosts.yml",
    ] {
        let path = home.join(name);
        fs::create_dir_all(path.parent().expect("a path below home")).expect("a folder");
        fs::write(path, secret).expect("a file");
    }
}
