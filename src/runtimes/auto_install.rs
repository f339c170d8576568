//! Whether a missing runtime may be fetched without being asked for each time:
//! `auto_install = true` in the user's `config.toml`. Even then it is told.

use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Settings {
    auto_install: bool,
}

/// What the user's configuration says; no, if it says nothing or cannot be read.
pub fn may_add_unasked(config: Option<&Path>) -> bool {
    let text = config.map(|config| std::fs::read_to_string(config.join("config.toml")));
    let settings = text.and_then(|text| toml::from_str::<Settings>(&text.ok()?).ok());
    settings.unwrap_or_default().auto_install
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched_unasked_unless_the_configuration_says_so() {
        let folder = tempfile::TempDir::new().unwrap();
        let says = |text: &str| {
            std::fs::write(folder.path().join("config.toml"), text).unwrap();
            may_add_unasked(Some(folder.path()))
        };
        assert!(says("other = 1\nauto_install = true\n"));
        assert!(!says("auto_install = false\n"));
        assert!(!says("auto_install = \"yes\"\n"));
        assert!(!says("auto_install = true\n["));
        assert!(!may_add_unasked(Some(&folder.path().join("none"))));
        assert!(!may_add_unasked(None));
    }
}
