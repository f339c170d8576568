//! What each table of the file comes to once it is checked: plain values, for the modules that
//! they are about. What these modules make of them is not known here.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use jail::{Access, Mount};
use toml::Spanned;

use super::error::{Mistake, checked};
use super::file::{
    Amount, LimitTable, LimitsTable, MountTable, PackagesTable, RecordsTable, SecretTable,
    WarmTable,
};
use crate::request::{
    AskedLimits, OwnerLimits, Pattern, RequestError, check_mount, check_variable, parse_count,
    parse_cpus, parse_duration, parse_size,
};
use crate::secret::{Header, Hidden, Secret};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Shorter values would be found in any text.
const SHORTEST: usize = 8;

/// `[packages]`. What is not written there is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packages {
    pub pypi: Option<String>,
    pub npm: Option<String>,
    pub go: Option<String>,
    pub crates: Option<String>,
    /// Absolute.
    pub folder: Option<PathBuf>,
    /// Bytes.
    pub size: Option<u64>,
    pub offline: bool,
    pub detect: Option<bool>,
    pub build: bool,
    /// Days.
    pub age: Option<u64>,
}

/// `[records]`: whether runs are recorded, how long records are kept, and how many bytes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Records {
    pub enabled: bool,
    pub time: Duration,
    pub bytes: u64,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            enabled: true,
            time: 30 * DAY,
            bytes: 1 << 30,
        }
    }
}

impl RecordsTable {
    pub fn check(&self) -> Result<Records, Mistake> {
        let usual = Records::default();
        let size = self.size.as_ref();
        let size = size.map(|size| checked(size, |it| parse_size(it)));
        Ok(Records {
            enabled: self.enabled.unwrap_or(usual.enabled),
            time: match &self.days {
                None => usual.time,
                Some(days) if *days.get_ref() == 0 => {
                    return Err(Mistake::at(days, "it must be at least 1"));
                }
                Some(days) => DAY * *days.get_ref(),
            },
            bytes: size.transpose()?.unwrap_or(usual.bytes),
        })
    }
}

impl WarmTable {
    pub fn check(self) -> Result<Vec<String>, Mistake> {
        let is_name = |name: &str| {
            let begins = |part: &str| !part.starts_with(|c: char| c.is_ascii_digit());
            let is_word = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
            name.split('.')
                .all(|part| !part.is_empty() && begins(part) && is_word(part))
        };
        match self.packages.iter().find(|it| !is_name(it.get_ref())) {
            Some(wrong) => Err(Mistake::at(
                wrong,
                "the name of a module was expected, such as \"numpy\" or \"matplotlib.pyplot\"",
            )),
            None => Ok(self.packages.into_iter().map(Spanned::into_inner).collect()),
        }
    }
}

impl PackagesTable {
    pub fn check(self) -> Result<Packages, Mistake> {
        let folder = match self.folder {
            Some(folder) if folder.get_ref().is_relative() => {
                return Err(Mistake::at(&folder, "the path is not absolute"));
            }
            folder => folder.map(|folder| folder.into_inner()),
        };
        let size = self.size.map(|size| checked(&size, |it| parse_size(it)));
        Ok(Packages {
            pypi: self.pypi,
            npm: self.npm,
            go: self.go,
            crates: self.crates,
            folder,
            size: size.transpose()?,
            offline: self.offline,
            detect: self.detect,
            build: self.build,
            age: self.age,
        })
    }
}

impl LimitsTable {
    pub fn check(&self) -> Result<OwnerLimits, Mistake> {
        Ok(OwnerLimits {
            default: self.default.check()?,
            max: self.max.check()?,
        })
    }
}

impl LimitTable {
    fn check(&self) -> Result<AskedLimits, Mistake> {
        Ok(AskedLimits {
            timeout: amount(&self.timeout, parse_duration)?,
            memory: amount(&self.memory, parse_size)?,
            tasks: amount(&self.processes, parse_count)?,
            cpus: amount(&self.cpus, parse_cpus)?,
            output: None,
        })
    }
}

pub fn amount<T>(
    value: &Option<Spanned<Amount>>,
    parse: impl Fn(&str) -> Result<T, RequestError>,
) -> Result<Option<T>, Mistake> {
    let read = |value: &Spanned<Amount>| {
        checked(value, |amount| match amount {
            Amount::Whole(number) => parse(&number.to_string()),
            Amount::Decimal(number) => parse(&number.to_string()),
            Amount::Text(text) => parse(text),
        })
    };
    value.as_ref().map(read).transpose()
}

impl MountTable {
    pub fn check(&self) -> Result<Mount, Mistake> {
        let access = match self.write {
            true => Access::Write,
            false => Access::ReadOnly,
        };
        let mount = check_mount(self.host.get_ref(), self.cell.get_ref(), access);
        mount.or_else(|error| match &error {
            RequestError::BadMount { what, .. } if what == self.cell.get_ref() => {
                checked(&self.cell, |_| Err(error))
            }
            _ => checked(&self.host, |_| Err(error)),
        })
    }
}

impl SecretTable {
    /// The secret with its value, or else the hosts that it would go to and why there is no value.
    pub fn check(self) -> Result<Result<Secret, (Vec<Pattern>, String)>, Mistake> {
        checked(&self.name, |name| check_variable(name, ""))?;
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|host| checked(host, |host| Pattern::parse(host)));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let header = self.header.map(|header| {
            let wrong = || Mistake::at(&header, "it is not `Name: value with {secret}`");
            Header::parse(header.get_ref()).ok_or_else(wrong)
        });
        let header = header.transpose()?;
        let found = match (&self.env, &self.file) {
            (Some(variable), None) => {
                env::var(variable).map_err(|_| format!("`{variable}` is not set"))
            }
            (None, Some(file)) => std::fs::read_to_string(file)
                .map_err(|error| format!("`{}` cannot be read: {error}", file.display())),
            _ => {
                let reason = "its table needs one of `env` and `file`";
                return Err(Mistake::at(&self.name, reason));
            }
        };
        let name = self.name.into_inner();
        let value = found.and_then(|value| match value.trim() {
            short if short.len() < SHORTEST => {
                Err(format!("its value is shorter than {SHORTEST} bytes"))
            }
            value if value.bytes().any(|byte| byte.is_ascii_control()) => {
                Err("its value is more than one line".to_owned())
            }
            value => Ok(Hidden::new(value)),
        });
        Ok(match value {
            Ok(value) => Ok(Secret {
                name,
                placeholder: String::new(),
                value,
                hosts,
                header,
            }),
            Err(why) => Err((hosts, format!("secret `{name}`: {why}"))),
        })
    }
}
