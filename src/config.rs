//! What the owner of this machine has decided for all runs: `config.toml` in hotcell's
//! folder of configuration. No file means no decision.
//!
//! ```toml
//! [network]
//! allow = ["*.example.com"]          # what a run may ask for: "none", "all" (the default) or hosts
//! private = ["registry.example.com"] # of those, what may be at a private address
//! transfer = "256m"                  # bytes that a run may send, and receive
//!
//! [packages]                         # docs/packages.md has all of it
//! pypi = "https://mirror.example.com/simple"
//!
//! [env]
//! pass = ["TEAM"]                    # variables of hotcell's own environment that programs get
//!
//! [[mount]]                          # a folder that every program sees
//! host = "/srv/data"
//! cell = "/data"
//! write = false
//!
//! [[secret]]                         # a program sees a placeholder in $API_KEY; the value goes to the hosts alone
//! name = "API_KEY"
//! hosts = ["api.example.com"]
//! env = "API_KEY"                    # hotcell's own variable that has the value; or: file = "/path"
//! header = "Authorization: Bearer {secret}"   # added to requests that have none
//!
//! [servers.github]                   # an MCP server whose tools programs may call; docs/servers.md
//! command = "npx"
//! args = ["-y", "some-server"]
//! ```

mod file;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jail::{Access, Mount};

use self::file::{File, Words};
use crate::egress::Egress;
use crate::request::{
    BadGrant, Network, Pattern, RequestError, RunRequest, add_mounts, check_mount, check_variable,
    parse_size,
};
use crate::secret::{Header, Hidden, Secret};
use crate::upstream::Settings;

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
    /// Secrets that have no value here, and why.
    missing: Vec<(Vec<Pattern>, String)>,
    /// The servers whose tools programs may call, by their names.
    pub servers: Vec<(String, Settings)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` cannot be used: {reason}", path.display())]
    Bad { path: PathBuf, reason: String },
}

impl ConfigError {
    pub const HINT: &str = "Mend the file; docs/network.md describes it.";
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
            Network::None => "Do without a network.".to_owned(),
            ceiling => format!("What may be granted is: {ceiling}."),
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
        }
    }
}

impl Config {
    /// Reads the file in `folder`, if there is one.
    pub fn load(folder: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = folder.map(|folder| folder.join(FILE)) else {
            return Ok(Self::default());
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        Self::parse(&text).map_err(|reason| ConfigError::Bad { path, reason })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let grant = |error: BadGrant| error.to_string();
        let request = |error: RequestError| error.to_string();
        let mut config = Self::default();
        match &file.network.allow {
            Some(Words::One(word)) => config.ceiling = Network::parse(word).map_err(grant)?,
            Some(Words::Many(words)) => {
                let words = words.iter().map(String::as_str);
                config.ceiling = Network::from_words(words).map_err(grant)?;
            }
            None => {}
        }
        for word in &file.network.private {
            config.private.push(Pattern::parse(word).map_err(grant)?);
        }
        if let Some(size) = &file.network.transfer {
            config.transfer = Some(parse_size(size).map_err(request)?);
        }
        for table in file.mount {
            let access = if table.write {
                Access::Write
            } else {
                Access::ReadOnly
            };
            let mount = check_mount(&table.host, &table.cell, access).map_err(request)?;
            add_mounts(&mut config.mounts, [mount]).map_err(request)?;
        }
        for table in file.secret {
            check_variable(&table.name, "").map_err(request)?;
            let hosts = table
                .hosts
                .iter()
                .map(|host| Pattern::parse(host).map_err(grant));
            let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
            let header = match &table.header {
                Some(text) => Some(Header::parse(text).ok_or_else(|| {
                    format!(
                        "secret `{}`: its header is not `Name: value with {{secret}}`",
                        table.name
                    )
                })?),
                None => None,
            };
            match table.value() {
                Ok(value) => config.secrets.push(Secret {
                    name: table.name,
                    placeholder: String::new(),
                    value: Hidden::new(&value),
                    hosts,
                    header,
                }),
                Err(why) => config
                    .missing
                    .push((hosts, format!("secret `{}`: {why}", table.name))),
            }
        }
        for name in file.env.pass {
            check_variable(&name, "").map_err(request)?;
            if let Ok(value) = std::env::var(&name) {
                config.env.push((name, value));
            }
        }
        for (name, table) in file.servers {
            let settings = table
                .settings()
                .map_err(|why| format!("server `{name}`: {why}"))?;
            config.servers.push((name, settings));
        }
        Ok(config)
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

    /// The way out for a request for `asked`; with notes on what is less than that.
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
                "network: {asked} was asked for, {network} is the most allowed and was used"
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
mod tests {
    use super::*;

    #[test]
    fn a_file_narrows_what_runs_may_ask_for() {
        let text = "[network]\nallow = ['*.a.test']\nprivate = ['b.a.test']\ntransfer = '1m'\n";
        let config = Config::parse(text).unwrap();
        let asked = |text: &str| config.egress(&Network::parse(text).unwrap());
        assert!(asked("none").unwrap().0.is_none());
        let (egress, notes) = asked("b.a.test").unwrap();
        let egress = egress.unwrap();
        assert_eq!(
            (egress.transfer, egress.private.len(), notes.len()),
            (1 << 20, 1, 0)
        );
        let (egress, notes) = asked("all").unwrap();
        assert_eq!(egress.unwrap().network.to_string(), "*.a.test");
        assert_eq!(
            notes,
            ["network: all was asked for, *.a.test is the most allowed and was used"]
        );
        let beyond = asked("b.test").unwrap_err();
        assert_eq!(beyond.hint(), "What may be granted is: *.a.test.");
    }

    #[test]
    fn what_is_not_understood_is_not_ignored() {
        for bad in [
            "[netwrok]\nallow = 'all'",
            "[network]\nalow = 'all'",
            "[network]\nallow = 'http://a.test'",
            "[network]\nallow = 5",
            "[network]\ntransfer = 'much'",
            "[env]\npass = ['A=b']",
            "[[mount]]\nhost = '/none/such'\ncell = '/data'",
            "[[mount]]\nhost = '/tmp'\ncell = '/etc'",
            "allow",
        ] {
            assert!(Config::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Config::parse("").unwrap().ceiling, Network::All);
    }
}
