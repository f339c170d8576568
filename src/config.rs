//! What the owner of this machine has decided for all runs: `config.toml` in hotcell's
//! folder of configuration. No file means no decision.
//!
//! [`reference`] has every key, and what it does.

mod discovered;
mod env_file;
mod error;
mod expand;
mod file;
mod isolation;
mod listing;
pub mod reference;
mod rules;
mod server;
mod servers;
mod stamp;
mod tables;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jail::Mount;

pub use self::discovered::{bridge_folder, plain_json};
pub use self::error::ConfigError;
use self::error::{Mistake, checked};
use self::file::{File, Words};
pub use self::isolation::{
    ContainerSettings, Isolations, NotOffered, container_user, is_image_name,
};
pub use self::listing::{Origin, Settled, listing};
pub use self::rules::{Redaction, Rules, Ruling};
pub use self::server::{Program, Reach, Remote, Server, Transport};
use self::servers::ServersTable;
pub use self::stamp::Stamp;
pub use self::tables::{Packages, Records};
use crate::egress::Egress;
use crate::request::{
    Network, OwnerLimits, Pattern, RequestError, RunRequest, add_mounts, check_variable, parse_size,
};
use crate::secret::{Redactor, Secret};

const FILE: &str = "config.toml";

/// The decisions, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// What a run's network may be at most.
    pub ceiling: Network,
    private: Vec<Pattern>,
    transfer: Option<u64>,
    mounts: Vec<Mount>,
    env: Vec<(String, String)>,
    secrets: Vec<Secret>,
    /// Secrets that have no value here: the hosts they would go to, and why.
    missing: Vec<(Vec<Pattern>, String)>,
    /// The servers whose tools programs may call, by their names.
    pub servers: Vec<(String, Server)>,
    /// Whether those of other programs' files are looked for too, if somebody has said so.
    pub discover: Option<bool>,
    /// What programs get tokens for, of servers that say nothing else.
    pub redact: Redaction,
    /// Whether those of mcp-server-code-execution-mode are read, in whose place hotcell is served.
    pub replaces_bridge: bool,
    /// Whether a missing runtime may be fetched without being asked for, if somebody has said so. Even then it is told.
    pub auto_install: Option<bool>,
    /// Whether programs may keep functions as tools for later ones.
    pub save_tools: bool,
    pub packages: Packages,
    pub limits: OwnerLimits,
    pub records: Records,
    /// Modules that sandboxes wait with from the start.
    pub warm: Vec<String>,
    /// Who builds the walls of sandboxes.
    pub isolation: Isolations,
    pub container: ContainerSettings,
}

/// Why a request asks for more than the configuration allows.
#[derive(Debug, thiserror::Error)]
#[error("the owner of this machine does not let programs reach `{beyond}`")]
pub struct BeyondCeiling {
    pub beyond: Pattern,
    pub ceiling: Network,
}

impl BeyondCeiling {
    pub fn hint(&self) -> String {
        match &self.ceiling {
            Network::None => "Run it without a network.".to_owned(),
            ceiling => format!("Ask only for: {ceiling}."),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // A run has no network unless its caller asks for one; which, is the caller's word
            // until somebody writes down another.
            ceiling: Network::All,
            private: Vec::new(),
            transfer: None,
            mounts: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            missing: Vec::new(),
            servers: Vec::new(),
            discover: None,
            replaces_bridge: false,
            redact: Redaction::default(),
            auto_install: None,
            save_tools: true,
            packages: Packages::default(),
            limits: OwnerLimits::default(),
            records: Records::default(),
            warm: Vec::new(),
            isolation: Isolations::default(),
            container: ContainerSettings::default(),
        }
    }
}

impl Config {
    /// The file in `folder`, whether it is there or not.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads the file in `folder`, if there is one.
    pub fn load(folder: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = folder.map(Self::file) else {
            return Ok(Self::default());
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        Self::parse(&path, &text).map_err(|mistake| mistake.located(&path, &text))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Mistake> {
        let file: File = toml::from_str(text)?;
        let mut config = Self {
            auto_install: file.auto_install,
            save_tools: file.save_tools.unwrap_or(true),
            packages: file.packages.check()?,
            limits: file.limits.check()?,
            records: file.records.check()?,
            warm: file.warm.check()?,
            container: file.container.check()?,
            isolation: Isolations::check(
                file.isolation,
                file.isolation_of,
                file.isolation_choices,
            )?,
            ..Self::default()
        };
        if let Some(allow) = &file.network.allow {
            config.ceiling = checked(allow, |words| {
                let network = match words {
                    Words::One(word) => Network::parse(word),
                    Words::Many(words) => Network::from_words(words.iter().map(String::as_str)),
                };
                network?.as_ceiling()
            })?;
        }
        for host in &file.network.private {
            config.private.push(checked(host, |it| Pattern::parse(it))?);
        }
        if let Some(size) = &file.network.transfer {
            config.transfer = Some(checked(size, |it| parse_size(it))?);
        }
        for table in file.mount {
            let mount = table.check()?;
            checked(&table.cell, |_| add_mounts(&mut config.mounts, [mount]))?;
        }
        for table in file.secret {
            match table.check()? {
                Ok(secret) => config.secrets.push(secret),
                Err(missing) => config.missing.push(missing),
            }
        }
        for name in file.env.pass {
            checked(&name, |it| check_variable(it, ""))?;
            let name = name.into_inner();
            if let Ok(value) = env::var(&name) {
                config.env.push((name, value));
            }
        }
        if file.servers.is_some() {
            let read = ServersTable::read(path, text)?;
            (config.servers, config.discover) = (read.servers, read.discover);
            config.redact = read.redact;
        }
        Ok(config)
    }

    /// The same with what was decided for one server: its limits come before those of the file, and it shows more folders.
    pub fn for_server(
        mut self,
        limits: OwnerLimits,
        mounts: impl IntoIterator<Item = Mount>,
    ) -> Result<Self, RequestError> {
        self.limits = limits.or(self.limits);
        add_mounts(&mut self.mounts, mounts)?;
        Ok(self)
    }

    /// Replaces the values of secrets by their names, for what is written down; none if there are no secrets.
    pub fn redactor(&self) -> Option<Redactor> {
        let named = |secret: &Secret| Secret {
            placeholder: format!("[secret {}]", secret.name),
            ..secret.clone()
        };
        let named: Vec<Secret> = self.secrets.iter().map(named).collect();
        Redactor::new(&named)
    }

    /// Secrets that have no value here, and why.
    pub fn missing_secrets(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(|(_, why)| why.as_str())
    }

    /// The folders that every program sees.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The request with what every program gets.
    pub fn extend(&self, request: RunRequest) -> Result<RunRequest, RequestError> {
        if self.mounts.is_empty() && self.env.is_empty() {
            return Ok(request);
        }
        let new = |(name, _): &&(String, String)| !request.has_variable(name);
        let env: Vec<_> = self.env.iter().filter(new).cloned().collect();
        request.env(env)?.mounts(self.mounts.iter().cloned())
    }

    /// What a program may reach whose request asks for `asked`; with notes on what is less than that.
    pub fn egress(&self, asked: &Network) -> Result<(Option<Egress>, Vec<String>), BeyondCeiling> {
        let network = asked
            .within(&self.ceiling)
            .map_err(|beyond| BeyondCeiling {
                beyond,
                ceiling: self.ceiling.clone(),
            })?;
        let narrower = network != *asked;
        let mut notes = Vec::new();
        if narrower {
            notes.push(format!(
                "network: {asked} was asked for; {network} was granted, which is all that is allowed"
            ));
        }
        for host in network.with_paths() {
            notes.push(format!(
                "network: all of `{host}` was granted: a grant cannot be limited to a path"
            ));
        }
        let touched = |hosts: &[Pattern]| hosts.iter().any(|host| network.touches(host));
        let missing = self.missing.iter().filter(|(hosts, _)| touched(hosts));
        notes.extend(missing.map(|(_, why)| why.clone()));
        let secrets = self.secrets.iter().filter(|secret| touched(&secret.hosts));
        let secrets = secrets.cloned().collect();
        let egress = Egress::new(network).map(|egress| Egress {
            private: self.private.clone(),
            transfer: self.transfer.unwrap_or(egress.transfer),
            secrets,
            ..egress
        });
        Ok((egress, notes))
    }
}

#[cfg(test)]
mod tests;
