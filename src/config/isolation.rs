//! Who builds the walls of sandboxes: `isolation` and `[container]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;

use super::error::Mistake;
use super::file::ContainerTable;
use crate::caller::Caller;
use crate::request::{IsolationChoice, parse_duration};

/// Reads the name of one.
pub(super) fn choice(word: &Spanned<String>) -> Result<IsolationChoice, Mistake> {
    let one_of = || format!("it is not one of: {}", IsolationChoice::WORDS.join(", "));
    IsolationChoice::parse(word.get_ref()).ok_or_else(|| Mistake::at(word, one_of()))
}

/// Who builds the walls of whose sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolations {
    /// For callers that are not named here.
    pub usual: IsolationChoice,
    callers: Vec<(&'static str, IsolationChoice)>,
    /// What a call may ask for besides.
    pub choices: Vec<IsolationChoice>,
}

/// A call asks for walls that the owner does not offer.
#[derive(Debug, thiserror::Error)]
#[error("the owner of this server offers no isolation `{}`", .0.word())]
pub struct NotOffered(pub IsolationChoice);

impl NotOffered {
    pub fn hint(&self) -> String {
        let word = self.0.word();
        format!(
            "Leave `isolation` out; the owner can offer it by `isolation_choices = [\"{word}\"]` in config.toml."
        )
    }
}

impl Isolations {
    /// One for every caller, and what a call may ask for besides.
    pub fn all(usual: IsolationChoice, choices: Vec<IsolationChoice>) -> Self {
        Self {
            usual,
            callers: Vec::new(),
            choices,
        }
    }

    pub(super) fn check(
        usual: Option<Spanned<String>>,
        callers: BTreeMap<Spanned<String>, Spanned<String>>,
        choices: Vec<Spanned<String>>,
    ) -> Result<Self, Mistake> {
        let mut of_callers = Vec::new();
        for (name, word) in &callers {
            let mut known = Caller::NAMES.into_iter();
            let known = known.find(|it| it == name.get_ref());
            let one_of = || format!("it is not one of: {}", Caller::NAMES.join(", "));
            let name = known.ok_or_else(|| Mistake::at(name, one_of()))?;
            of_callers.push((name, choice(word)?));
        }
        Ok(Self {
            usual: usual.as_ref().map(choice).transpose()?.unwrap_or_default(),
            callers: of_callers,
            choices: choices.iter().map(choice).collect::<Result<_, _>>()?,
        })
    }

    /// What a call of `caller` gets that asks for `asked`; `None` if that is the usual.
    pub fn of(
        &self,
        caller: &Caller,
        asked: Option<IsolationChoice>,
    ) -> Result<Option<IsolationChoice>, NotOffered> {
        let mut callers = self.callers.iter();
        let own = callers.find(|(name, _)| *name == caller.name());
        let own = own.map(|(_, choice)| *choice);
        match asked {
            None => Ok(own),
            Some(asked) if asked == own.unwrap_or(self.usual) => Ok(own),
            Some(asked) if self.choices.contains(&asked) => Ok(Some(asked)),
            Some(asked) => Err(NotOffered(asked)),
        }
    }

    /// All but the usual that a program may get.
    pub fn others(&self) -> impl Iterator<Item = IsolationChoice> {
        let callers = self.callers.iter().map(|(_, choice)| *choice);
        callers.chain(self.choices.iter().copied())
    }
}

/// `[container]`: how containers are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSettings {
    /// An image that is used as it is, in place of one with the host's `/usr`.
    pub image: Option<String>,
    /// The OCI runtime that the engine is to use.
    pub runtime: Option<String>,
    /// Who programs are in every container, by their numbers.
    pub user: Option<(u32, u32)>,
    /// After how long a Podman machine that hotcell has started is stopped when nothing runs.
    pub machine_idle: Duration,
    /// The folder with programs that hotcell has fetched.
    pub fetched: Option<PathBuf>,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            image: None,
            runtime: None,
            user: None,
            machine_idle: Duration::from_secs(300),
            fetched: None,
        }
    }
}

impl ContainerTable {
    pub fn check(self) -> Result<ContainerSettings, Mistake> {
        let word = |word: Option<Spanned<String>>| {
            let checked = word.map(|word| match is_image_name(word.get_ref()) {
                true => Ok(word.into_inner()),
                false => Err(Mistake::at(&word, "it is no name that an engine takes")),
            });
            checked.transpose()
        };
        let usual = ContainerSettings::default();
        let user = self.user.map(|word| {
            let expected = "two numbers were expected as in \"1000:1000\", neither of them 0";
            container_user(word.get_ref()).ok_or_else(|| Mistake::at(&word, expected))
        });
        let idle = self.machine_idle.map(|word| {
            let time = parse_duration(word.get_ref());
            time.map_err(|error| Mistake::at(&word, error.to_string()))
        });
        Ok(ContainerSettings {
            image: word(self.image)?,
            runtime: word(self.runtime)?,
            user: user.transpose()?,
            machine_idle: idle.transpose()?.unwrap_or(usual.machine_idle),
            ..usual
        })
    }
}

/// A user and a group by their numbers. Nobody is root.
pub fn container_user(text: &str) -> Option<(u32, u32)> {
    let text = text.trim();
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    let user: (u32, u32) = (uid.parse().ok()?, gid.parse().ok()?);
    (user.0 != 0 && user.1 != 0).then_some(user)
}

/// Whether it can be an argument of its own, and is no option.
pub fn is_image_name(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"./:_-@".contains(&it);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_part)
}
