//! Starting the real binary as root and as an ordinary user, and reading its answer.
//!
//! Each [`Hotcell`] has a copy of the binary, a home and a folder for temporary files
//! of its own, so that what a run leaves behind can be told from its neighbours'.

pub mod isolation;
pub mod left;
pub mod running;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use running::{Answer, Running};

/// Where the interpreters of the tests are searched.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Longer than anything here takes on a busy machine; only a hang comes this far.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The same for what a program computes, of which a test may ask much: beside fifty others it gets little of a processor.
pub const ANSWER: Duration = Duration::from_secs(300);

/// The binary, to be started by one user.
pub struct Hotcell {
    pub name: &'static str,
    pub uid: u32,
    /// Whether that user has subordinate ids, which needs root to pretend.
    has_ids: bool,
    /// Whose walls its programs are behind, if not hotcell's own.
    pub isolation: Option<&'static str>,
    folder: TempDir,
}

/// Starts a program as a user whom /etc gives subordinate ids, without a change of /etc for anybody else.
const WITH_IDS: &str = r#"
mount=/usr/bin/mount
$mount --make-rprivate / && $mount --bind "$1" /etc/passwd && $mount --bind "$2" /etc/subuid && $mount --bind "$2" /etc/subgid || exit 99
user=$3 && shift 3 && exec /usr/bin/setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"#;

/// Root and an ordinary user, or the one we are. One for whom this host builds no cell
/// is left out aloud, or is a failure where `HOTCELL_NO_SKIP` says so.
pub fn everyone() -> Vec<Hotcell> {
    static REFUSED: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    let refused = REFUSED.get_or_init(|| callers().iter().filter_map(refusal).collect());
    let able = callers().into_iter().filter(|hotcell| {
        let found = refused.iter().find(|(name, _)| *name == hotcell.name);
        found.is_none_or(|(name, why)| {
            skip(&format!("no cell as {name}: {why}"));
            false
        })
    });
    able.collect()
}

/// [`everyone`], and the same program with another provider of cells that has no walls: for what concerns none.
pub fn every_provider() -> Vec<Hotcell> {
    let mut all = everyone();
    let uid = rustix::process::getuid().as_raw();
    all.extend(example("no-walls").map(|other| Hotcell::of(&other, "no walls", uid)));
    all
}

/// An example of ours, if it was built; skips if not, as after `cargo test --test it` alone.
pub fn example(name: &str) -> Option<PathBuf> {
    let binary = Path::new(env!("CARGO_BIN_EXE_hotcell"));
    let found = binary.with_file_name("examples").join(name);
    if !found.exists() {
        skip(&format!("the example `{name}` is not built"));
        return None;
    }
    Some(found)
}

/// Any one of [`everyone`], if there is one: for what does not depend on who asks.
pub fn anyone() -> Option<Hotcell> {
    everyone().pop()
}

/// The one who is not root, if there is one.
pub fn ordinary() -> Option<Hotcell> {
    everyone().into_iter().find(|hotcell| hotcell.uid != 0)
}

/// A shell that starts us in the background has us ignore interrupts, and what we start would inherit that.
fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the usual action is no function of ours.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    });
}

/// Says that something was not tested, and why.
pub fn skip(why: &str) {
    println!("SKIP {why}");
    let allowed = std::env::var_os("HOTCELL_NO_SKIP").is_none_or(|value| value != "1");
    assert!(allowed, "skipped, and HOTCELL_NO_SKIP is set: {why}");
}

/// Whether the tests' own `PATH` has a program; skips if not.
pub fn has(program: &str) -> bool {
    let found = PATH
        .split(':')
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        skip(&format!("no `{program}` on this host"));
    }
    found
}

/// The same for a program of a language that only `scripts/test --all-languages` installs: others go on without it, aloud.
pub fn has_heavy(program: &str) -> bool {
    let is_installed = std::env::var_os("HOTCELL_ALL_LANGUAGES").is_some();
    let found = |folder: &str| Path::new(folder).join(program).exists();
    match PATH.split(':').any(found) {
        false if !is_installed => {
            println!("SKIP no `{program}` on this host");
            false
        }
        _ => has(program),
    }
}

/// Asks until it is so or `limit` is over; whether it came to be so.
pub fn eventually(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// An ordinary user who has subordinate ids, if one can be pretended here.
pub fn with_ids() -> Option<Hotcell> {
    if !rustix::process::getuid().is_root() {
        skip("only root can give a user subordinate ids");
        return None;
    }
    let files = ["/etc/subuid", "/etc/subgid"].map(Path::new);
    if !files.iter().all(|file| file.exists()) {
        skip("no /etc/subuid on this host");
        return None;
    }
    let mut hotcell = ["newuidmap", "setpriv"]
        .into_iter()
        .all(has)
        .then(|| Hotcell::new("user with ids", unused_uid()))?;
    hotcell.has_ids = true;
    let uid = hotcell.uid;
    let passwd = fs::read_to_string("/etc/passwd").expect("a passwd file");
    hotcell.write(
        "etc/passwd",
        format!("{passwd}owner:x:{uid}:{uid}::/:/bin/sh\n"),
    );
    hotcell.write("etc/ids", format!("owner:{}:1024\n", hotcell.first_id()));
    Some(hotcell)
}

fn callers() -> Vec<Hotcell> {
    match rustix::process::getuid().as_raw() {
        // For the whole suite with subordinate ids, by hand.
        0 if std::env::var_os("HOTCELL_WITH_IDS").is_some() => with_ids().into_iter().collect(),
        // As are whole suites behind other walls.
        0 if isolation::chosen().is_some() => vec![Hotcell::new("root", 0)],
        0 => vec![Hotcell::new("root", 0), Hotcell::new("user", unused_uid())],
        own => vec![Hotcell::new("user", own)],
    }
}

/// Nobody's, and no other test's: limits and leftovers are counted by user.
pub fn unused_uid() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let of_this_process = 100_000 + std::process::id() % 30_000 * 1000;
    of_this_process + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn refusal(hotcell: &Hotcell) -> Option<(&'static str, String)> {
    let answer = hotcell.run(&["-l", "sh", "-c", "exit 7"]);
    let why = || (hotcell.name, answer.err().replace('\n', "; "));
    (answer.code != Some(7)).then(why)
}

impl Hotcell {
    fn new(name: &'static str, uid: u32) -> Self {
        let hotcell = Self::of(Path::new(env!("CARGO_BIN_EXE_hotcell")), name, uid);
        match isolation::chosen() {
            Some(isolation) => hotcell.within(isolation),
            None => hotcell,
        }
    }

    pub fn of(binary: &Path, name: &'static str, uid: u32) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("it-")
            .tempdir()
            .expect("a folder");
        let hotcell = Self {
            name,
            uid,
            has_ids: false,
            isolation: None,
            folder,
        };
        open_to_all(hotcell.folder.path());
        for name in ["bin", "home", "tmp"] {
            hotcell.make_folder(name);
        }
        // The same file system is not a given, and a copy is 50 MB.
        if fs::hard_link(binary, hotcell.binary()).is_err() {
            fs::copy(binary, hotcell.binary()).expect("a copy of the binary");
        }
        hotcell
    }

    /// `hotcell` with nothing in its environment but `PATH`, `HOME` and `TMPDIR`.
    pub fn command(&self) -> Command {
        self.other(&self.binary())
    }

    /// The same with another program.
    pub fn other(&self, program: &Path) -> Command {
        let mut command = match self.has_ids {
            false => Command::new(program),
            true => {
                let mut command = Command::new("/usr/bin/unshare");
                command.args(["--mount", "/bin/sh", "-c", WITH_IDS, "sh"]);
                command.args([self.place("etc/passwd"), self.place("etc/ids")]);
                command.arg(self.uid.to_string()).arg(program);
                command
            }
        };
        self.dress(&mut command);
        command
    }

    /// The first of its subordinate ids, if it has any; there are 1024.
    pub fn first_id(&self) -> u32 {
        0x4000_0000 + self.uid % 500_000 * 1024
    }

    /// Another program, started as the same user and in the same surroundings.
    pub fn dress(&self, command: &mut Command) {
        heed_interrupts();
        command
            .env_clear()
            .env("PATH", self.path())
            .env("HOME", self.home())
            .env("TMPDIR", self.temporary())
            .current_dir(self.home())
            .stdin(Stdio::null());
        if rustix::process::getuid().is_root() && self.uid != 0 && !self.has_ids {
            command.uid(self.uid).gid(self.uid);
        }
    }

    /// `hotcell run` with these arguments and no input, to its end.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        self.start(arguments).finish()
    }

    /// The same with `input` on its standard input.
    pub fn run_with(&self, input: &[u8], arguments: &[&str]) -> Answer {
        self.start_with_input(arguments).finish_with(input)
    }

    /// The whole result of `hotcell run --json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[&["--json"], arguments].concat()).json()
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command().arg("run").args(arguments))
    }

    /// Its standard input is ours to write to.
    pub fn start_with_input(&self, arguments: &[&str]) -> Running {
        let mut command = self.command();
        Running::start(command.arg("run").args(arguments).stdin(Stdio::piped()))
    }

    pub fn binary(&self) -> PathBuf {
        self.place("bin/hotcell")
    }

    pub fn home(&self) -> PathBuf {
        self.place("home")
    }

    pub fn temporary(&self) -> PathBuf {
        self.place("tmp")
    }

    /// A path below this one's own folder.
    pub fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Makes a folder, with those above it, that belongs to this user.
    pub fn make_folder(&self, path: impl AsRef<Path>) -> PathBuf {
        let mut folder = self.place("");
        for part in path.as_ref() {
            folder.push(part);
            if !folder.exists() {
                fs::create_dir(&folder).expect("a folder");
                open_to_all(&folder);
                self.give(&folder);
            }
        }
        folder
    }

    /// Writes a file that belongs to this user.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.place(path);
        if let Some(folder) = Path::new(path).parent() {
            self.make_folder(folder);
        }
        let walls = self.isolation.filter(|_| path == isolation::CONFIG);
        let walls = walls.map_or(String::new(), |it| format!("isolation = \"{it}\"\n"));
        fs::write(&file, [walls.as_bytes(), text.as_ref()].concat()).expect("a file");
        self.give(&file);
        file
    }

    fn give(&self, path: &Path) {
        if rustix::process::getuid().is_root() {
            chown(path, Some(self.uid), Some(self.uid)).expect("root gives it away");
        }
    }
}

/// Lets every user read (and enter, or run) a file.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
}
