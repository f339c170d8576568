//! The file as it is written: tables and words, not checked yet, each with its position in the text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub network: NetworkTable,
    pub env: EnvTable,
    pub mount: Vec<MountTable>,
    pub secret: Vec<SecretTable>,
    /// Read one by one, by [`ServersTable`](super::servers::ServersTable).
    pub servers: Option<IgnoredAny>,
    pub auto_install: Option<bool>,
    pub save_tools: Option<bool>,
    pub packages: PackagesTable,
    pub limits: LimitsTable,
    pub records: RecordsTable,
    pub warm: WarmTable,
    pub isolation: Option<Spanned<String>>,
    pub isolation_of: BTreeMap<Spanned<String>, Spanned<String>>,
    pub isolation_choices: Vec<Spanned<String>>,
    pub container: ContainerTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WarmTable {
    pub packages: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainerTable {
    pub image: Option<Spanned<String>>,
    pub runtime: Option<Spanned<String>>,
    pub user: Option<Spanned<String>>,
    pub machine_idle: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordsTable {
    pub enabled: Option<bool>,
    pub days: Option<Spanned<u32>>,
    pub size: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    pub default: LimitTable,
    pub max: LimitTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitTable {
    pub timeout: Option<Spanned<Amount>>,
    pub memory: Option<Spanned<Amount>>,
    pub processes: Option<Spanned<Amount>>,
    pub cpus: Option<Spanned<Amount>>,
}

/// A number, or one with a unit.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a text such as \"1g\" was expected")]
pub enum Amount {
    Whole(i64),
    Decimal(f64),
    Text(String),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkTable {
    pub allow: Option<Spanned<Words>>,
    pub private: Vec<Spanned<String>>,
    pub transfer: Option<Spanned<String>>,
}

/// One word or a list.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a word or a list of words was expected")]
pub enum Words {
    One(String),
    Many(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvTable {
    pub pass: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountTable {
    pub host: Spanned<PathBuf>,
    pub cell: Spanned<String>,
    #[serde(default)]
    pub write: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTable {
    pub name: Spanned<String>,
    pub hosts: Vec<Spanned<String>>,
    pub env: Option<String>,
    pub file: Option<PathBuf>,
    pub header: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PackagesTable {
    pub pypi: Option<String>,
    pub npm: Option<String>,
    pub go: Option<String>,
    pub crates: Option<String>,
    pub folder: Option<Spanned<PathBuf>>,
    pub size: Option<Spanned<String>>,
    pub offline: bool,
    pub detect: Option<bool>,
    pub build: bool,
    pub age: Option<u64>,
}
