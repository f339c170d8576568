//! A request to run a program, valid by construction.
//!
//! Surfaces build a [`RunRequest`] from what a caller sent; every check of the
//! caller's words is here. Nothing here knows which languages exist or what
//! this host can do.

mod cell_path;
mod files;
mod limits;
mod mount;
mod network;
mod outline;
mod packages;
mod session_name;
mod showing;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

pub use jail::{Access, Mount};

use crate::hint::Hint;

pub use cell_path::{BadCellPath, CellPath};
pub use files::{FileSource, InputFile};
pub use limits::{
    AskedLimits, OwnerLimits, bytes, parse_count, parse_cpus, parse_duration, parse_size,
};
pub use mount::{add_mounts, check_mount, overlap, parse_mount, parse_workspace};
pub use network::{BadGrant, BadHost, Host, Name, Network, Pattern, Target, USUAL_PORTS};
pub use outline::{Outline, OutlinedFile, OutlinedMount};
pub use packages::AskedPackages;
pub use session_name::SessionName;
pub use showing::Showing;

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
    offline: bool,
    network: Network,
    servers: Option<Vec<String>>,
    mounts: Vec<Mount>,
    wants_files: bool,
    showing: Showing,
    session: Option<SessionName>,
}

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("there is no code to run")]
    EmptyCode,

    #[error("{what} has a NUL byte")]
    Nul { what: String },

    #[error("`{}` is not a valid name for an environment variable", .0.escape_debug())]
    BadVariable(String),

    #[error("`{}` is not {expected}", value.escape_debug())]
    BadNumber {
        value: String,
        expected: &'static str,
        example: &'static str,
    },

    #[error("{what} is longer than {most} bytes")]
    TooLong { what: String, most: usize },

    #[error(transparent)]
    BadPath(#[from] BadCellPath),

    #[error("two files have the path `{0}`")]
    SamePath(CellPath),

    #[error(transparent)]
    Grant(#[from] BadGrant),

    #[error("`{}` cannot be mounted: {reason}", what.escape_debug())]
    BadMount { what: String, reason: &'static str },

    #[error("`{}` is not a name for a session", .0.escape_debug())]
    BadSession(String),

    #[error("there is no variable `{0}` in hotcell's own environment")]
    Unset(String),

    #[error("cannot read `{}`", path.display())]
    HostFile { path: PathBuf, source: io::Error },
}

impl RequestError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::EmptyCode => Hint::GiveCode,
            Self::Nul { what } if what == "the code" => "Save the program as UTF-8 text.".into(),
            Self::Nul { .. } | Self::TooLong { .. } => "Pass it in a file.".into(),
            Self::BadVariable(_) => {
                "Use letters, digits and `_`, not starting with a digit: `NAME=value`.".into()
            }
            Self::BadPath(_) => {
                "Use a relative path inside the workspace, such as `data/in.csv`.".into()
            }
            Self::SamePath(_) => Hint::RenameFile,
            Self::Grant(_) => BadGrant::HINT.into(),
            Self::BadMount { .. } => Hint::GiveMount,
            Self::BadSession(_) => "Use 1 to 64 letters, digits, `.`, `_` and `-`.".into(),
            Self::Unset(_) => "Set it, or give its value: `NAME=value`.".into(),
            Self::HostFile { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "Check the path.".into(),
                io::ErrorKind::PermissionDenied => "Check its permissions.".into(),
                io::ErrorKind::IsADirectory => Hint::GiveFile,
                _ => return None,
            },
            Self::BadNumber { example, .. } => format!("Write it as in {example}.").into(),
        })
    }
}

/// The kernel's bound on one argument or variable, with its NUL.
const LONGEST_STRING: usize = (128 << 10) - 1;
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
            offline: false,
            network: Network::None,
            servers: None,
            mounts: Vec::new(),
            wants_files: false,
            showing: Showing::Nothing,
            session: None,
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
        for file in files {
            if self.files.iter().any(|other| other.is_in_the_way_of(&file)) {
                return Err(RequestError::SamePath(file.path));
            }
            self.files.push(file);
        }
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

    /// The session that it is a call of: what earlier calls left is there.
    pub fn in_session(mut self, name: SessionName) -> Self {
        self.session = Some(name);
        self
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
}

/// Without the byte order mark that some editors put at the start of a file.
pub fn unmarked(code: &[u8]) -> &[u8] {
    code.strip_prefix(b"\xef\xbb\xbf").unwrap_or(code)
}

/// Whether a variable can be in a program's environment: `[A-Za-z_][A-Za-z0-9_]*`, no NUL.
pub fn check_variable(name: &str, value: &str) -> Result<(), RequestError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(plain) {
        return Err(RequestError::BadVariable(name.to_owned()));
    }
    let what = format!("variable `{name}`");
    check_string(&what, value)?;
    if name.len() + 1 + value.len() > LONGEST_STRING {
        return Err(RequestError::TooLong {
            what,
            most: LONGEST_STRING,
        });
    }
    Ok(())
}

fn check_string(what: &str, text: &str) -> Result<(), RequestError> {
    if text.contains('\0') {
        return Err(RequestError::Nul {
            what: what.to_owned(),
        });
    }
    if text.len() > LONGEST_STRING {
        return Err(RequestError::TooLong {
            what: what.to_owned(),
            most: LONGEST_STRING,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
