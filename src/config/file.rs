//! The file as it is written: tables and words, not checked yet.

use std::path::PathBuf;

use serde::Deserialize;

/// Shorter values would be found in any text.
const SHORTEST: usize = 8;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub network: NetworkTable,
    pub env: EnvTable,
    pub mount: Vec<MountTable>,
    pub secret: Vec<SecretTable>,
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
