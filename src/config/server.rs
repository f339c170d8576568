//! A server whose tools programs may call: as somebody has written it down, and what that comes to on this machine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use reqwest::Url;

use super::env_file::{self, EnvFile};
use super::expand::{Expander, Variables};
use super::rules::Rules;
use crate::request::check_variable;
use crate::secret::Hidden;

/// What every program needs of hotcell's own environment.
const USUAL: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "TERM", "TMPDIR", "USER"];
/// Shorter values would be found in any text.
const SHORTEST: usize = 8;
/// How long a server that nobody calls is kept running.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// Headers of the protocol itself, which are no matter of its users.
const RESERVED: [&str; 5] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub reach: Reach,
    pub description: Option<String>,
    /// Values that must not come back from it.
    pub secrets: Vec<Hidden>,
    /// Variables that it should have and that are not set.
    pub unset: Vec<String>,
    /// How long it is kept when nobody calls it.
    pub idle: Duration,
    /// What programs may do with it.
    pub rules: Rules,
    /// Tools that MCP clients get as they are, beside `run`.
    pub expose: Vec<String>,
    /// The file that it is written in.
    pub source: PathBuf,
    /// The file with more variables for it, as it was before it was read.
    pub env_file: Option<EnvFile>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    Program(Program),
    Remote(Remote),
    /// Not at all: this is wrong with its entry.
    Mistake(String),
}

/// A server that is started as a program, on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Never empty.
    pub command: Vec<String>,
    pub folder: Option<PathBuf>,
    /// The whole environment of the server.
    pub env: BTreeMap<String, Hidden>,
}

/// A server at an address.
#[derive(Clone, PartialEq)]
pub struct Remote {
    pub url: Url,
    pub headers: Vec<(HeaderName, Hidden)>,
    /// `None`: the newer one, and the older one if the server does not know that.
    pub transport: Option<Transport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, of 2024.
    Sse,
}

/// An entry as it is written, in whatever file: variables are not expanded yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    pub command: Vec<String>,
    pub folder: Option<String>,
    pub env: Vec<(String, String)>,
    /// A file with more variables; those of `env` win.
    pub env_file: Option<String>,
    /// Variables of hotcell's own environment that it gets.
    pub pass: Vec<String>,
    pub url: Option<String>,
    pub headers: Vec<(String, String)>,
    /// The variable of hotcell's own environment that has its token.
    pub bearer: Option<String>,
    pub transport: Option<Transport>,
    pub description: Option<String>,
    pub idle: Option<Duration>,
    pub rules: Rules,
    pub expose: Vec<String>,
}

impl fmt::Debug for Remote {
    /// Without what its address may hold beside the host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.url.host_str().unwrap_or_default())
    }
}

impl Server {
    /// One that cannot be reached, and why.
    pub fn mistaken(why: String, source: &Path) -> Self {
        Self {
            reach: Reach::Mistake(why),
            description: None,
            secrets: Vec::new(),
            unset: Vec::new(),
            idle: IDLE,
            rules: Rules::default(),
            expose: Vec::new(),
            source: source.to_owned(),
            env_file: None,
        }
    }
}

impl Transport {
    pub fn parse(text: &str) -> Option<Self> {
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "http" | "streamablehttp" => Some(Self::Http),
            "sse" => Some(Self::Sse),
            _ => None,
        }
    }
}

impl Entry {
    /// What it comes to with these variables, or what is wrong with it.
    pub fn resolve(self, source: &Path, variables: Variables<'_>) -> Result<Server, String> {
        let mut expander = Expander::new(variables);
        let reach = match (&self.url, self.command.first().map(String::as_str)) {
            (Some(_), Some(_)) => return Err("it has a `command` and a `url`".to_owned()),
            (Some(url), None) => Reach::Remote(self.remote(url, &mut expander)?),
            (None, None | Some("")) => return Err("it has no `command` and no `url`".to_owned()),
            (None, Some(_)) => Reach::Program(self.program(&mut expander)?),
        };
        let Expander {
            unset, mut secrets, ..
        } = expander;
        secrets.retain(|secret| secret.reveal().len() >= SHORTEST);
        Ok(Server {
            reach,
            description: self.description,
            secrets,
            unset,
            idle: self.idle.unwrap_or(IDLE),
            rules: self.rules,
            expose: self.expose,
            source: source.to_owned(),
            env_file: None,
        })
    }

    fn program(&self, expander: &mut Expander<'_>) -> Result<Program, String> {
        let command = self.command.iter().map(|word| expander.expand(word));
        let command = command.collect::<Result<_, _>>()?;
        let folder = self.folder.as_deref();
        let folder = folder.map(|it| expander.expand(it)).transpose()?;
        let mut env = BTreeMap::new();
        for name in USUAL {
            env.extend(expander.own(name).map(|it| (name.to_owned(), it)));
        }
        for name in &self.pass {
            match expander.own(name) {
                None => expander.unset.push(name.clone()),
                Some(value) => {
                    check_variable(name, value.reveal()).map_err(|error| error.to_string())?;
                    expander.secrets.push(value.clone());
                    env.insert(name.clone(), value);
                }
            }
        }
        for (name, value) in self.in_file(expander)? {
            let value = Hidden::new(&value);
            // Whatever they are called: who has such a file has it for its secrets.
            expander.secrets.push(value.clone());
            env.insert(name, value);
        }
        for (name, value) in &self.env {
            let value = expander.expand(value)?;
            check_variable(name, &value).map_err(|error| error.to_string())?;
            expander.unset.retain(|it| it != name);
            let value = Hidden::new(&value);
            if sounds_secret(name) {
                expander.secrets.push(value.clone());
            }
            env.insert(name.clone(), value);
        }
        Ok(Program {
            command,
            folder: folder.map(|folder| at_home(&folder, expander)),
            env,
        })
    }

    /// The file with its variables, if it names one that can be found.
    pub fn env_file(&self, variables: Variables<'_>) -> Option<EnvFile> {
        let mut expander = Expander::new(variables);
        let path = expander.expand(self.env_file.as_ref()?).ok()?;
        let path = at_home(&path, &expander);
        expander.unset.is_empty().then(|| EnvFile::new(path))
    }

    /// The variables of its file, if it names one.
    fn in_file(&self, expander: &mut Expander<'_>) -> Result<Vec<(String, String)>, String> {
        let Some(written) = &self.env_file else {
            return Ok(Vec::new());
        };
        let unset = expander.unset.len();
        let path = expander.expand(written)?;
        // A path without its beginning would be another file's.
        if let Some(name) = expander.unset.get(unset) {
            return Err(format!(
                "its `envFile` needs `${{{name}}}`, which is not set"
            ));
        }
        env_file::read(&at_home(&path, expander))
    }

    fn remote(&self, url: &str, expander: &mut Expander<'_>) -> Result<Remote, String> {
        let url = expander.expand(url)?;
        let url = Url::parse(&url).map_err(|error| format!("its `url` is not one: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("its `url` is not one of HTTP".to_owned());
        }
        let password = url.password().into_iter();
        let named = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            sounds_secret(&name).then(|| Hidden::new(&value))
        };
        expander.secrets.extend(password.map(Hidden::new));
        expander.secrets.extend(url.query_pairs().filter_map(named));
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let (name, value) = (name.trim(), expander.expand(value)?);
            if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
                continue;
            }
            let wrong = || format!("`{}` is not a header", name.escape_debug());
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            HeaderValue::from_str(&value).map_err(|_| wrong())?;
            if sounds_secret(name) {
                // The token may come back without its scheme.
                let token = value.split_once(' ').map_or(&*value, |(_, token)| token);
                expander.secrets.push(Hidden::new(token));
            }
            headers.push((key, Hidden::new(&value)));
        }
        if let Some(name) = &self.bearer {
            match expander.own(name) {
                None => expander.unset.push(name.clone()),
                Some(token) => {
                    let value = format!("Bearer {}", token.reveal().trim());
                    HeaderValue::from_str(&value)
                        .map_err(|_| format!("the value of `{name}` is no token"))?;
                    headers.push((hyper::header::AUTHORIZATION, Hidden::new(&value)));
                    expander.secrets.push(token);
                }
            }
        }
        Ok(Remote {
            url,
            headers,
            transport: self.transport,
        })
    }
}

/// Whether what has this name is nobody else's business.
pub fn sounds_secret(name: &str) -> bool {
    let words = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "CREDENTIAL",
        "AUTH",
        "COOKIE",
    ];
    let name = name.to_ascii_uppercase();
    words.iter().any(|word| name.contains(word))
}

/// A path with `~` for the home.
fn at_home(path: &str, expander: &Expander<'_>) -> PathBuf {
    match (path.strip_prefix('~'), expander.own("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            PathBuf::from(format!("{}{rest}", home.reveal()))
        }
        _ => PathBuf::from(path),
    }
}
