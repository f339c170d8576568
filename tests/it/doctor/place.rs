//! Where the doctor is called: a copy of the binary, on this host or a poorer one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::unused_uid;

/// Who starts the binary. Tests that run as somebody else are that one in both cases.
#[derive(Clone, Copy, PartialEq)]
pub enum Who {
    Root,
    User,
}

/// A folder with a copy of the binary that everybody may run, and a way to start it.
pub struct Place {
    who: Who,
    /// Of the ordinary user: nobody else's, since the kernel counts by user what a probe uses up.
    uid: u32,
    pub folder: TempDir,
    pub binary: PathBuf,
    /// Runs first, as root of a user and mount namespace around the binary.
    before: Option<String>,
}

impl Place {
    pub fn of(who: Who) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let binary = folder.path().join("hotcell");
        fs::copy(env!("CARGO_BIN_EXE_hotcell"), &binary).expect("the binary can be copied");
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary).expect("a folder for temporary files");
        for (path, mode) in [
            (folder.path(), 0o755),
            (&binary, 0o755),
            (&temporary, 0o777),
        ] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        Self {
            who,
            uid: unused_uid(),
            folder,
            binary,
            before: None,
        }
    }

    /// The same place on a host that `change` has made poorer, if that can be pretended.
    pub fn with(&self, change: &str) -> Option<Self> {
        let place = Self {
            before: Some(change.to_owned()),
            ..Self::of(self.who)
        };
        let tried = place.run("exit 0");
        if !tried.status.success() {
            let why = String::from_utf8_lossy(&tried.stderr).into_owned();
            skip(&format!("`{change}` does not work here: {why}"));
            return None;
        }
        Some(place)
    }

    pub fn doctor(&self) -> Report {
        let output = self.run("exec \"$HOTCELL\" doctor");
        Report {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            code: output.status.code(),
        }
    }

    /// Runs a line of shell in which `$HOTCELL` is the binary.
    pub fn run(&self, line: &str) -> Output {
        let line = match &self.before {
            Some(before) => format!("{before} && {line}"),
            None => line.to_owned(),
        };
        let mut command = self.command(Path::new("timeout"));
        command.arg("60");
        if self.before.is_some() {
            // The rights in the namespace last, but the uid stays an ordinary one.
            command.args(["unshare", "--user", "--map-current-user", "--keep-caps"]);
            command.arg("--mount");
        }
        command.args(["sh", "-c", &line]);
        command.output().expect("a shell can be started")
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("HOTCELL", &self.binary)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        if self.who == Who::User && rustix::process::geteuid().is_root() {
            command.uid(self.uid).gid(self.uid);
        }
        command
    }

    /// By default and with `--require strict` nothing runs; with `--allow-reduced` it does.
    pub fn refuses_runs_without(&self, wall: &str) {
        for option in ["", "--require strict"] {
            let run = self.run(&format!(
                "exec \"$HOTCELL\" run {option} -l sh -c 'echo ran'"
            ));
            assert_eq!(run.status.code(), Some(125), "{option}");
            assert_eq!(run.stdout, b"", "{option}");
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(said.contains(wall) && said.contains("hint: "), "{said}");
        }
        let run = self.run("exec \"$HOTCELL\" run --allow-reduced -l sh -c 'echo ran'");
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{said}");
        assert_eq!(run.stdout, b"ran\n");
    }

    /// What the binary left in its folder for temporary files.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("tmp")).expect("a folder");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }
}

/// A report as people read it.
pub struct Report {
    pub text: String,
    pub code: Option<i32>,
}

impl Report {
    /// The name and state of each check.
    pub fn lines(&self) -> Vec<(String, String)> {
        let checks = self.text.lines().filter_map(|line| {
            let (mark, rest) = line.strip_prefix("  ")?.split_at_checked(8)?;
            let state = mark.trim_end().to_lowercase();
            let name = rest.get(..20).unwrap_or(rest).trim_end();
            ["ok", "missing", "failed"]
                .contains(&state.as_str())
                .then(|| (name.to_owned(), state))
        });
        checks.collect()
    }

    pub fn state_of(&self, name: &str) -> String {
        let found = self.lines().into_iter().find(|(check, _)| check == name);
        found.map(|(_, state)| state).unwrap_or_default()
    }

    /// How to fix a check, as it is written below its line.
    pub fn fix_of(&self, name: &str) -> String {
        let is_check = |line: &&str| line.get(10..).is_some_and(|rest| rest.starts_with(name));
        let mut lines = self.text.lines().skip_while(|line| !is_check(line)).skip(1);
        let below = lines
            .by_ref()
            .take_while(|line| line.starts_with("          "));
        let fix = below
            .map(str::trim_start)
            .find_map(|line| line.strip_prefix("fix: "));
        fix.unwrap_or_default().to_owned()
    }

    /// What the last line says.
    pub fn isolation(&self) -> &str {
        let last = self.text.lines().last().unwrap_or_default();
        last.strip_prefix("isolation: ").unwrap_or(last)
    }
}

/// Says why a test cannot be made here, which where skips are forbidden fails it.
pub fn skip(why: &str) {
    assert!(std::env::var_os("HOTCELL_NO_SKIP").is_none(), "{why}");
    println!("SKIP: {why}");
}
