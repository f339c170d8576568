//! A request to run a program, valid by construction.
//!
//! Surfaces build a [`RunRequest`] from what a caller sent; every check of the
//! caller's words is here. Nothing here knows which languages exist or what
//! this host can do.

mod cell_path;
mod error;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod isolation;
mod limits;
mod mount;
mod network;
mod outline;
mod packages;
mod session_name;
mod showing;
mod strings;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

pub use jail::{Access, Mount};

pub use cell_path::{BadCellPath, CellPath};
pub use error::RequestError;
use files::check_paths;
pub use files::{FileSource, InputFile};
pub use isolation::IsolationChoice;
pub use limits::{
    AskedLimits, OwnerLimits, bytes, parse_count, parse_cpus, parse_duration, parse_size,
};
pub use mount::{add_mounts, check_mount, overlap, parse_mount, parse_workspace};
pub use network::{BadGrant, BadHost, Host, Name, Network, Pattern, Target, USUAL_PORTS};
pub use outline::{Outline, OutlinedFile, OutlinedMount};
pub use packages::{AskedPackages, Ecosystem, join_locks};
pub use session_name::SessionName;
pub use showing::Showing;
use strings::check_string;
pub use strings::check_variable;

/// One program to run, with its surroundings.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    code: Vec<u8>,
    language: Option<String>,
    engine: Option<String>,
    file_name: Option<CellPath>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    files: Vec<InputFile>,
    limits: AskedLimits,
    packages: AskedPackages,
    own_modules: Vec<String>,
    offline: bool,
    fetches: bool,
    network: Network,
    servers: Option<Vec<String>>,
    isolation: Option<IsolationChoice>,
    mounts: Vec<Mount>,
    wants_files: bool,
    showing: Showing,
    session: Option<SessionName>,
    call: Call,
}

/// One call among those of its session.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// By which its runtime knows it, from 1 on.
    pub number: u64,
    /// What a session begins with that has no sandbox yet; files of the request replace those of the same name.
    pub begin: Vec<InputFile>,
    /// The languages of its session that are started already.
    pub started: Vec<String>,
}

impl Default for Call {
    fn default() -> Self {
        Self {
            number: 1,
            begin: Vec::new(),
            started: Vec::new(),
        }
    }
}

/// The kernel takes a quarter of the 8 MiB stack for arguments and environment; half of that leaves room for ours.
const LONGEST_TOTAL: usize = 1 << 20;

impl RunRequest {
    pub fn new(code: impl Into<Vec<u8>>) -> Result<Self, RequestError> {
        let code = code.into();
        if code.contains(&0) {
            return Err(RequestError::Nul {
                what: "the code".to_owned(),
            });
        }
        if unmarked(&code).iter().all(u8::is_ascii_whitespace) {
            return Err(RequestError::EmptyCode);
        }
        Ok(Self {
            code,
            language: None,
            engine: None,
            file_name: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            files: Vec::new(),
            limits: AskedLimits::default(),
            packages: AskedPackages::Detect,
            own_modules: Vec::new(),
            offline: false,
            fetches: false,
            network: Network::None,
            servers: None,
            isolation: None,
            mounts: Vec::new(),
            wants_files: false,
            showing: Showing::Nothing,
            session: None,
            call: Call::default(),
        })
    }

    /// The same with another program in its place.
    pub fn with_code(self, code: impl Into<Vec<u8>>) -> Result<Self, RequestError> {
        let Self { code, .. } = Self::new(code)?;
        Ok(Self { code, ..self })
    }

    /// The language by any of its names, and perhaps what shall run it, as in
    /// `javascript@embedded`; whether those exist is for the registry to say.
    pub fn language(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        match name.split_once('@') {
            Some((language, engine)) => {
                self.language = Some(language.to_owned());
                self.engine = Some(engine.to_owned());
            }
            None => self.language = Some(name),
        }
        self
    }

    /// What shall run it: `embedded`, or one of the language's commands.
    pub fn engine(mut self, name: impl Into<String>) -> Self {
        self.engine = Some(name.into());
        self
    }

    /// The program's file, of which the last part is kept. It is only a hint, so an odd name is no error.
    pub fn named(mut self, file: impl AsRef<Path>) -> Self {
        let name = file.as_ref().file_name().and_then(OsStr::to_str);
        self.file_name = name.and_then(|name| CellPath::parse(name).ok());
        self
    }

    /// The path that the program has in the workspace, if its language lets it keep that.
    pub fn placed(mut self, path: CellPath) -> Self {
        self.file_name = Some(path);
        self
    }

    pub fn args(
        mut self,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, RequestError> {
        self.args.extend(args.into_iter().map(Into::into));
        for (at, arg) in self.args.iter().enumerate() {
            check_string(&format!("argument {}", at + 1), arg)?;
        }
        self.check_total()
    }

    pub fn env(
        mut self,
        env: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result<Self, RequestError> {
        for (name, value) in env {
            let (name, value) = (name.into(), value.into());
            check_variable(&name, &value)?;
            self.env.insert(name, value);
        }
        self.check_total()
    }

    pub fn files(
        mut self,
        files: impl IntoIterator<Item = InputFile>,
    ) -> Result<Self, RequestError> {
        self.files.extend(files);
        check_paths(&self.files)?;
        Ok(self)
    }

    pub fn limits(mut self, limits: AskedLimits) -> Result<Self, RequestError> {
        limits.check()?;
        self.limits = limits;
        Ok(self)
    }

    /// The packages to install; how each is written is for its language to check.
    pub fn packages(mut self, packages: AskedPackages) -> Result<Self, RequestError> {
        packages.check()?;
        self.packages = packages;
        Ok(self)
    }

    /// Modules that are the caller's own, though they are not among the files: no package is installed for these.
    pub fn own_modules(mut self, names: Vec<String>) -> Self {
        self.own_modules = names;
        self
    }

    pub fn asked_modules(&self) -> &[String] {
        &self.own_modules
    }

    /// What it shows is wanted, beside what it prints.
    pub fn showing(mut self, showing: Showing) -> Self {
        self.showing = showing;
        self
    }

    /// Nothing is fetched for this program.
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    pub fn asked_packages(&self) -> &AskedPackages {
        &self.packages
    }

    pub fn is_offline(&self) -> bool {
        self.offline
    }

    pub fn asked_files(&self) -> &[InputFile] {
        &self.files
    }

    /// What it may reach, as far as the configuration allows.
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// The servers whose tools it may call, in place of all that are configured.
    pub fn servers(mut self, servers: Vec<String>) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Who builds the walls of its sandbox, if the owner leaves that to callers.
    pub fn isolation(mut self, choice: Option<IsolationChoice>) -> Self {
        self.isolation = choice;
        self
    }

    pub fn asked_isolation(&self) -> Option<IsolationChoice> {
        self.isolation
    }

    /// Folders of the host for the program to see. Only ever from whoever owns them.
    pub fn mounts(mut self, mounts: impl IntoIterator<Item = Mount>) -> Result<Self, RequestError> {
        add_mounts(&mut self.mounts, mounts)?;
        Ok(self)
    }

    /// Has the contents of the files brought back that the program leaves, and not only their names.
    pub fn wants_files(mut self, wants: bool) -> Self {
        self.wants_files = wants;
        self
    }

    /// Has a runtime that is missing fetched, unless the owner has decided otherwise.
    pub fn fetches_runtime(mut self) -> Self {
        self.fetches = true;
        self
    }

    pub fn may_fetch_runtime(&self) -> bool {
        self.fetches
    }

    /// The session that it is a call of: what earlier calls left is there.
    pub fn in_session(mut self, name: SessionName) -> Self {
        self.session = Some(name);
        self
    }

    /// Which of its session's calls it is.
    pub fn as_call(mut self, call: Call) -> Self {
        self.call = call;
        self
    }

    /// The same without its program, to be compared with others.
    pub fn frame(&self) -> Self {
        let mut frame = Self {
            code: Vec::new(),
            ..self.clone()
        };
        frame.call.number = 0;
        frame
    }

    /// Whether it differs from the one of this frame in its program alone, and brings no files.
    pub fn fits(&mut self, frame: &Self) -> bool {
        let code = std::mem::take(&mut self.code);
        let number = std::mem::take(&mut self.call.number);
        let brings = !self.files.is_empty() || !self.call.begin.is_empty();
        let fits = !brings && self == frame;
        (self.code, self.call.number) = (code, number);
        fits
    }

    pub fn session(&self) -> Option<&SessionName> {
        self.session.as_ref()
    }

    pub fn asked_args(&self) -> &[String] {
        &self.args
    }

    pub fn asked_servers(&self) -> Option<&[String]> {
        self.servers.as_deref()
    }

    pub fn asked_network(&self) -> &Network {
        &self.network
    }

    pub fn has_variable(&self, name: &str) -> bool {
        self.env.contains_key(name)
    }

    /// The program as it is read: never empty, no NUL, without a byte order mark at its start,
    /// which only its file keeps; not always UTF-8.
    pub fn code(&self) -> &[u8] {
        unmarked(&self.code)
    }

    pub fn asked_language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    pub fn asked_engine(&self) -> Option<&str> {
        self.engine.as_deref()
    }

    pub fn file_name(&self) -> Option<&CellPath> {
        self.file_name.as_ref()
    }

    pub fn asked_limits(&self) -> &AskedLimits {
        &self.limits
    }

    /// Takes the request apart for the plan, without copying the program.
    pub(crate) fn into_parts(self) -> Parts {
        let Self {
            code,
            args,
            env,
            files,
            mounts,
            wants_files,
            showing,
            call,
            ..
        } = self;
        Parts {
            code,
            args,
            env,
            files,
            mounts,
            wants_files,
            showing,
            call,
        }
    }

    fn check_total(self) -> Result<Self, RequestError> {
        let args: usize = self.args.iter().map(|arg| arg.len() + 9).sum();
        let env: usize = self
            .env
            .iter()
            .map(|(name, value)| name.len() + value.len() + 10)
            .sum();
        if args + env > LONGEST_TOTAL {
            let what = "the arguments and environment together".to_owned();
            return Err(RequestError::TooLong {
                what,
                most: LONGEST_TOTAL,
            });
        }
        Ok(self)
    }
}

/// What a plan keeps of a request as it is.
pub(crate) struct Parts {
    /// Every byte of the program's file.
    pub code: Vec<u8>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub files: Vec<InputFile>,
    pub mounts: Vec<Mount>,
    pub wants_files: bool,
    pub showing: Showing,
    pub call: Call,
}

/// Without the byte order mark that some editors put at the start of a file.
pub fn unmarked(code: &[u8]) -> &[u8] {
    code.strip_prefix(b"\xef\xbb\xbf").unwrap_or(code)
}

#[cfg(test)]
mod tests;
