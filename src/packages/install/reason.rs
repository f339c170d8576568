//! Why packages could not be installed, in words for whoever asked.

use super::Job;
use crate::packages::gateway::Gateway;
use crate::packages::known_imports::lookalikes;
use crate::packages::{Found, PackageError};

/// More than a reader wants of a resolver's words.
const LONGEST_REASON: usize = 1500;

impl Job<'_> {
    /// What is wanted, for messages.
    pub(super) fn what(&self) -> String {
        let wishes = &self.packages.wishes;
        if wishes.lock.is_some() {
            return "the packages of the lock".to_owned();
        }
        let found = wishes
            .known
            .iter()
            .chain(&wishes.guessed)
            .chain(&wishes.optional);
        let found = found.map(|it| match it.package.name() == it.module {
            true => format!("`{}`", it.package),
            false => format!("`{}` (for `import {}`)", it.package, it.module),
        });
        let named = wishes.named.iter().map(|it| format!("`{it}`"));
        let all: Vec<String> = named.chain(found).collect();
        match all.len() {
            0..=6 => all.join(", "),
            more => format!("{} and {} more", all[..5].join(", "), more - 5),
        }
    }

    pub(super) fn stopped(&self, reason: &str) -> PackageError {
        PackageError::Stopped {
            what: self.what(),
            reason: reason.to_owned(),
        }
    }

    pub(super) fn unresolved(&self, gateway: &Gateway, reason: String) -> PackageError {
        let missing = gateway.log().missing.clone();
        let wishes = &self.packages.wishes;
        let mut found = wishes.known.iter().chain(&wishes.guessed);
        let of_missing = found.clone().find(|it| missing.contains(&it.package.key()));
        let module = of_missing
            .or_else(|| {
                // The last that the installer speaks of.
                let at = |it: &&Found| reason.rfind(it.package.name());
                found.clone().filter(|it| at(it).is_some()).max_by_key(at)
            })
            .or_else(|| found.next())
            .map(|it| it.module.clone());
        let near = missing
            .iter()
            .flat_map(|it| lookalikes(self.packages.how.from, it));
        let mut candidates: Vec<String> = near.map(str::to_owned).collect();
        candidates.dedup();
        PackageError::Unresolved {
            what: self.what(),
            reason,
            module,
            candidates,
        }
    }
}

/// A resolver's words in one line, without its ornaments.
pub(super) fn reason_of(said: &str) -> String {
    let plain = |c: char| !"×╰─▶│├❯✗".contains(c);
    let lines = said
        .lines()
        .map(|line| line.chars().filter(|c| plain(*c)).collect::<String>());
    let words: Vec<String> = lines
        .flat_map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let mut text = words.join(" ");
    if let Some((end, _)) = text.char_indices().nth(LONGEST_REASON) {
        text.truncate(end);
        text.push('…');
    }
    match text.is_empty() {
        true => "the installer gave no reason".to_owned(),
        false => text,
    }
}
