//! What one cell is started with.
//!
//! SECURITY: a launch begins with nothing granted, and every place that starts a cell builds its own up from there. Nobody
//! copies another's and takes grants away: a grant that is new would then be in the copy until somebody remembers it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jail::{Limits, Link, Mount, Terminal, Tree, View, Zygote};

use super::{WantedChanges, Workspace};
use crate::loopback::Service;
use crate::request::{CellPath, InputFile, overlap};
use crate::secret::Secret;

/// Everything that a cell is started with. What is not named here it does not have.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program and its arguments; the first is an absolute path inside the cell, or [`jail::ENGINE`].
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Placed in the workspace before the program starts.
    pub files: Vec<InputFile>,
    /// What it sees of the host beyond `/usr`.
    pub view: View,
    /// Who answers at a port of its own loopback.
    pub loopback: Option<Loopback>,
    /// Secrets that are replaced by their placeholders in what it prints.
    pub secrets: Vec<Secret>,
    pub limits: Limits,
    /// When it is ended, counted from its start.
    pub timeout: Duration,
    /// Bytes of output after which it is ended.
    pub output_limit: u64,
    /// Folders of the workspace whose files are wanted when it has ended well.
    pub collect: Vec<CellPath>,
    /// The folder of the workspace with what it shows, which is wanted however it ends.
    pub shown: Option<CellPath>,
    /// A folder of the workspace that is copied to a folder of the host when it has ended well.
    pub export: Option<(CellPath, PathBuf)>,
    /// What is wanted of the files that it leaves in the workspace, however it ended.
    pub changes: Option<WantedChanges>,
    /// The terminal that it is started at.
    pub terminal: Option<Terminal>,
    /// Whether it is kept between calls, which come over a channel.
    pub channel: bool,
    /// The part it has in a session without being kept.
    pub share: Option<Share>,
    /// The pre-started runtime that it could go on with.
    pub prestart: Option<Prestart>,
    /// How a new runtime has what it prints gathered, if it can.
    pub gathering: Option<Gathering>,
}

/// A runtime whose output is gathered by the library in front of its libc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathering {
    /// The word of its command line that had it gather nothing.
    pub instead_of: String,
    /// The program's file in the workspace, as the runtime is told it, and what some commands come to before.
    pub script: String,
    pub starter: String,
    /// What it runs after the program instead of taking itself apart, if anything.
    pub leave: Arc<str>,
}

/// What a program that runs once has of a session: its files before, and those that it leaves.
#[derive(Debug, Clone, Default)]
pub struct Share {
    /// Where the files are, if there are any yet.
    pub files: Option<Workspace>,
}

/// A runtime that may have been started before the program came.
#[derive(Debug, Clone, PartialEq)]
pub struct Prestart {
    pub zygote: Zygote,
    /// The usual limits, which such sandboxes are made with: a program with others gets a new one.
    pub limits: Limits,
    /// MiB that one takes up while it waits, if it shares nothing with others.
    pub weight: u32,
    /// Whether such sandboxes are made with a loopback listener. It is closed for a program that has no use for it.
    pub listens: bool,
    /// Code that the runtime runs before the program.
    pub prelude: String,
    /// What it could have done before the program came, if the program begins with it.
    pub ahead: Option<Ahead>,
}

/// The imports that a program begins with, done in a sandbox that waits for it: all of its walls stand, and it has one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The set of packages that they are of.
    pub packages: String,
    pub imports: Vec<String>,
    /// Code that does them and waits for more code, which is what is left of the prelude.
    pub code: String,
    pub rest: String,
}

/// A port of the cell's own loopback, and who answers there.
#[derive(Clone)]
pub struct Loopback {
    pub port: u16,
    pub service: Arc<dyn Service>,
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loopback({})", self.port)
    }
}

/// For a program that says how long it may take nowhere.
const TIMEOUT: Duration = Duration::from_secs(30);
const OUTPUT: u64 = 1 << 20;

impl Launch {
    /// A program with an empty environment and workspace, that sees `/usr` and nothing else, within the usual limits.
    pub fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            env: BTreeMap::new(),
            files: Vec::new(),
            view: View::default(),
            loopback: None,
            secrets: Vec::new(),
            limits: Limits::default(),
            timeout: TIMEOUT,
            output_limit: OUTPUT,
            collect: Vec::new(),
            shown: None,
            export: None,
            changes: None,
            terminal: None,
            channel: false,
            share: None,
            prestart: None,
            gathering: None,
        }
    }

    /// Sets variables; those it has already get these values.
    pub fn env(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env.extend(variables);
        self
    }

    /// Sets variables that it does not have yet.
    pub fn default_env(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in variables {
            self.env.entry(name).or_insert(value);
        }
        self
    }

    /// Adds files to its workspace, placed in this order.
    pub fn files(mut self, files: impl IntoIterator<Item = InputFile>) -> Self {
        self.files.extend(files);
        self
    }

    /// Shows it folders of the host, read-only.
    pub fn trees(mut self, trees: impl IntoIterator<Item = Tree>) -> Self {
        for tree in trees {
            if !self.view.trees.contains(&tree) {
                self.view.trees.push(tree);
            }
        }
        self
    }

    /// Grants it folders of the host.
    pub fn mounts(mut self, mounts: impl IntoIterator<Item = Mount>) -> Self {
        self.view.mounts.extend(mounts);
        self
    }

    /// Adds symbolic links at its root. What the caller mounts at such a path wins.
    pub fn links(mut self, links: impl IntoIterator<Item = Link>) -> Self {
        let mounts = &self.view.mounts;
        let is_free = |link: &Link| !mounts.iter().any(|it| overlap(&it.cell, &link.path));
        self.view.links.extend(links.into_iter().filter(is_free));
        self
    }

    /// Lets it reach `service` at a port of its own loopback.
    pub fn serve(mut self, port: u16, service: Arc<dyn Service>) -> Self {
        self.loopback = Some(Loopback { port, service });
        self
    }

    /// Has secrets replaced by their placeholders in what it prints.
    pub fn secrets(mut self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub fn output_limit(self, output_limit: u64) -> Self {
        Self {
            output_limit,
            ..self
        }
    }

    /// Has the files of a folder of the workspace brought back.
    pub fn collect(mut self, folder: CellPath) -> Self {
        self.collect.push(folder);
        self
    }

    /// Has a folder of the workspace copied to a folder of the host.
    pub fn export(self, folder: CellPath, to: PathBuf) -> Self {
        Self {
            export: Some((folder, to)),
            ..self
        }
    }

    /// Has the files looked for that it leaves in the workspace.
    pub fn changes(self, wanted: WantedChanges) -> Self {
        Self {
            changes: Some(wanted),
            ..self
        }
    }

    /// Gives it a channel over which calls come.
    pub fn channel(self) -> Self {
        Self {
            channel: true,
            ..self
        }
    }

    /// The runtime that it could go on with, unless it needs what only a new cell has.
    pub fn waiting_runtime(&self) -> Option<&Prestart> {
        let prestart = self.prestart.as_ref()?;
        let is_heard = self.loopback.is_none() || prestart.listens;
        // A new cell has what a prelude does from its start.
        let is_short = prestart.prelude.len() <= jail::spec::LONGEST_PRELUDE;
        (self.terminal.is_none() && is_heard && is_short).then_some(prestart)
    }

    /// Whether its workspace is used after it has started.
    pub fn holds_workspace(&self) -> bool {
        !self.collect.is_empty()
            || self.shown.is_some()
            || self.export.is_some()
            || self.changes.is_some()
            || self.channel
            || self.share.is_some()
    }

    pub(super) fn env_words(&self) -> Vec<std::ffi::OsString> {
        let word = |(name, value): (&String, &String)| format!("{name}={value}").into();
        self.env.iter().map(word).collect()
    }
}
