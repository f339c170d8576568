//! The form `run py CODE`, which code-runner-mcp has too: with its texts for what is wrong with it, and its exit code.
//!
//! The texts are exact. Our hints follow them: here there are more languages than two.

use std::io;

use super::Arguments;
use crate::engine::Rejected;
use crate::hint::Hint;
use crate::language::LanguageError;
use crate::request::RequestError;

/// Its languages, by which its users can be told.
const NAMES: [&str; 4] = ["js", "javascript", "py", "python"];
pub const EXIT_CODE: u8 = 1;

/// Whether a first word is one of its languages.
pub fn is_its(language: &str) -> bool {
    NAMES.contains(&language)
}

/// Its text for an error, and our hint.
pub fn words(rejected: &Rejected, arguments: &Arguments) -> Option<(String, Option<Hint>)> {
    let own = rejected.hint();
    if !arguments.is_two_words {
        let none = "There is no file of that name either; `hotcell languages` lists the languages.";
        let hint = match rejected {
            Rejected::Language(_) => own,
            _ => Some(none.into()),
        };
        return unknown(rejected, arguments).map(|it| (it, hint));
    }
    let Rejected::Request(error) = rejected else {
        return None;
    };
    Some(match error {
        RequestError::EmptyCode => (
            "No code provided. Pass inline code, --file, or pipe via stdin.".to_owned(),
            None,
        ),
        RequestError::BadPackages(text) => (format!("Invalid --packages JSON: \"{text}\""), own),
        RequestError::HostFile { path, source } if arguments.file() == Some(path) => (
            format!("Failed to read file \"{}\": {source}", path.display()),
            own,
        ),
        _ => return None,
    })
}

/// About a first word that is neither a language nor a file, with a program behind it.
fn unknown(rejected: &Rejected, arguments: &Arguments) -> Option<String> {
    let word = arguments.file().filter(|_| arguments.has_words())?;
    let is_unknown = match rejected {
        Rejected::Language(LanguageError::Unknown { asked, .. }) => word.to_str() == Some(asked),
        Rejected::Request(RequestError::HostFile { path, source }) => {
            path == word
                && super::arguments::is_bare(word)
                && source.kind() == io::ErrorKind::NotFound
        }
        _ => false,
    };
    is_unknown.then(|| {
        format!(
            "Unknown language: \"{}\". Use \"js\" or \"py\".",
            word.display()
        )
    })
}
