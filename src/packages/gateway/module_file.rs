//! The files that a Go module has, by the rules of Go's proxies.

use super::super::requirement::{Ecosystem, Requirement};

/// A path as Go's client asks for it, of the few kinds that there are.
pub(super) enum ModuleFile {
    /// A version itself, and what to call it.
    Zip(String),
    Other,
}

impl ModuleFile {
    pub(super) fn parse(path: &str) -> Option<Self> {
        // A capital letter is written as `!` and the small one.
        let mut plain = String::with_capacity(path.len());
        let mut letters = path.chars();
        while let Some(letter) = letters.next() {
            plain.push(match letter {
                '!' => letters
                    .next()
                    .filter(char::is_ascii_lowercase)?
                    .to_ascii_uppercase(),
                letter => Some(letter).filter(|it| !it.is_ascii_uppercase())?,
            });
        }
        let (module, file) = plain.split_once("/@")?;
        let bare = |text: &str| Requirement::parse(text, Ecosystem::Go).ok();
        bare(module).filter(Requirement::is_bare)?;
        let Some(file) = file.strip_prefix("v/").filter(|it| *it != "list") else {
            return ["latest", "v/list"].contains(&file).then_some(Self::Other);
        };
        let (version, ending) = file.rsplit_once('.')?;
        // With the same grammar as a caller's.
        let whole = bare(&format!("{module}@{version}"))?.to_string();
        match ending {
            "zip" => Some(Self::Zip(whole)),
            "info" | "mod" => Some(Self::Other),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
