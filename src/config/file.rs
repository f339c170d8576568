//! The file as it is written: tables and words, not checked yet.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::request::check_variable;
use crate::secret::Hidden;
use crate::upstream::Settings;

/// Shorter values would be found in any text.
const SHORTEST: usize = 8;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub network: NetworkTable,
    pub env: EnvTable,
    pub mount: Vec<MountTable>,
    pub secret: Vec<SecretTable>,
    pub servers: BTreeMap<String, ServerTable>,
    /// Used where runtimes and packages are fetched; here they are only checked.
    #[serde(rename = "auto_install")]
    _auto_install: bool,
    #[serde(rename = "packages")]
    _packages: crate::packages::Table,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkTable {
    pub allow: Option<Words>,
    pub private: Vec<String>,
    pub transfer: Option<String>,
}

/// One word or a list.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Words {
    One(String),
    Many(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvTable {
    pub pass: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountTable {
    pub host: PathBuf,
    pub cell: String,
    #[serde(default)]
    pub write: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTable {
    pub name: String,
    pub hosts: Vec<String>,
    pub env: Option<String>,
    pub file: Option<PathBuf>,
    pub header: Option<String>,
}

impl SecretTable {
    /// Its value, or why there is none.
    pub fn value(&self) -> Result<String, String> {
        let value = match (&self.env, &self.file) {
            (Some(variable), None) => {
                std::env::var(variable).map_err(|_| format!("`{variable}` is not set"))?
            }
            (None, Some(file)) => std::fs::read_to_string(file)
                .map_err(|error| format!("`{}` cannot be read: {error}", file.display()))?,
            _ => return Err("its table needs one of `env` and `file`".to_owned()),
        };
        match value.trim() {
            short if short.len() < SHORTEST => {
                Err(format!("its value is shorter than {SHORTEST} bytes"))
            }
            value if value.bytes().any(|byte| byte.is_ascii_control()) => {
                Err("its value is more than one line".to_owned())
            }
            value => Ok(value.to_owned()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables for it beside the few that every program needs.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables of hotcell's own environment for it.
    #[serde(default)]
    pub pass: Vec<String>,
    pub cwd: Option<PathBuf>,
}

/// What every program needs of hotcell's own environment.
const USUAL: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "TERM", "TMPDIR", "USER"];

impl ServerTable {
    /// How it is started, or why it cannot be.
    pub fn settings(self) -> Result<Settings, String> {
        if self.command.is_empty() {
            return Err("its command is empty".to_owned());
        }
        let own = |name: &str| {
            std::env::var(name)
                .ok()
                .map(|value| (name.to_owned(), value))
        };
        let usual = USUAL.iter().filter_map(|name| own(name));
        let passed = self.pass.iter().filter_map(|name| own(name));
        let env: BTreeMap<_, _> = usual.chain(passed).chain(self.env).collect();
        for (name, value) in &env {
            check_variable(name, value).map_err(|error| error.to_string())?;
        }
        let unset = self.pass.iter().filter(|name| !env.contains_key(*name));
        let unset = unset.cloned().collect();
        let hide = |(name, value): (String, String)| (name, Hidden::new(&value));
        Ok(Settings {
            command: [self.command].into_iter().chain(self.args).collect(),
            folder: self.cwd,
            env: env.into_iter().map(hide).collect(),
            secret: self.pass,
            unset,
        })
    }
}
