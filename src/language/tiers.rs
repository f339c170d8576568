//! What a user wants pre-started runtimes to have loaded, beside what the languages' own files say.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::DefinitionError;
use super::Tier;

/// The tiers in `<config>/warm.toml`, by the language's id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tiers(BTreeMap<String, Vec<Tier>>);

impl Tiers {
    /// A file that is not there has none.
    pub fn load(config: Option<&Path>) -> Result<Self, DefinitionError> {
        let Some(file) = config.map(|config| config.join("warm.toml")) else {
            return Ok(Self::default());
        };
        let broken = |line, message| DefinitionError {
            file: file.clone(),
            line,
            message,
        };
        match fs::read_to_string(&file) {
            Ok(text) => match toml::from_str(&text) {
                Ok(tiers) => Ok(Self(tiers)),
                Err(error) => {
                    let before = error.span().and_then(|span| text.get(..span.start));
                    let line = before.map(|before| 1 + before.matches('\n').count());
                    // One line: this is shown as an error message.
                    let message = error.message().lines().collect::<Vec<_>>().join("; ");
                    Err(broken(line, message))
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(broken(None, error.to_string())),
        }
    }

    pub fn of(&self, language: &str) -> &[Tier] {
        self.0.get(language).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_tiers_is_read_and_one_that_is_wrong_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let load = || Tiers::load(Some(folder.path()));
        assert_eq!(load(), Ok(Tiers::default()));
        let file = folder.path().join("warm.toml");
        fs::write(
            &file,
            "[[python]]\nmodules = ['scipy']\nbefore = 'import scipy'\n",
        )
        .expect("a file");
        let tiers = load().expect("it is right");
        assert_eq!(tiers.of("python")[0].before, "import scipy");
        assert!(tiers.of("ruby").is_empty());
        fs::write(&file, "[[python]]\nmodule = 'scipy'\n").expect("a file");
        assert!(
            load()
                .expect_err("it is wrong")
                .to_string()
                .contains("warm.toml:2: unknown field `module`")
        );
    }
}
