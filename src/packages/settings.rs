//! What the owner of this machine has decided about packages: `[packages]` of the configuration,
//! and variables over it.

use std::path::{Path, PathBuf};

use reqwest::Url;

use super::{Ecosystem, PackageError};
use crate::config;
use crate::runtimes::{Registry, registry_base};

#[derive(Debug, Clone)]
pub struct Settings {
    /// The registries, if not the usual ones.
    pypi: Option<String>,
    npm: Option<String>,
    go: Option<String>,
    crates: Option<String>,
    /// Where installed packages are kept.
    pub folder: Option<PathBuf>,
    /// What they may take on disk.
    pub size: u64,
    /// Whether nothing may be fetched.
    pub offline: bool,
    /// Whether imports are installed that nobody named.
    pub detect: bool,
    /// Whether packages may run code while they are installed.
    pub build: bool,
    /// How many days a package must have been there to be installed unnamed.
    pub age: u64,
}

/// Some sets of packages are a gigabyte each.
const SIZE: u64 = 8 << 30;
/// Most of what is put into registries to deceive is found within weeks.
const AGE: u64 = 90;

impl Settings {
    /// What the configuration says, unless a variable says otherwise.
    pub fn new(table: config::Packages, cache: Option<&Path>) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.trim().is_empty());
        let folder = variable("HOTCELL_PACKAGES_DIR")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or(table.folder);
        Self {
            pypi: variable("HOTCELL_PYPI_INDEX").or(table.pypi),
            npm: variable("HOTCELL_NPM_REGISTRY").or(table.npm),
            go: variable("HOTCELL_GO_PROXY").or(table.go),
            crates: variable("HOTCELL_CRATES_INDEX").or(table.crates),
            folder: folder.or_else(|| Some(cache?.join("packages"))),
            size: table.size.unwrap_or(SIZE),
            offline: table.offline || variable("HOTCELL_OFFLINE").is_some_and(|it| it != "0"),
            detect: table.detect.unwrap_or(true),
            build: table.build,
            age: table.age.unwrap_or(AGE),
        }
    }

    /// The address of a registry, with a slash at its end.
    pub fn registry(&self, ecosystem: Ecosystem) -> Result<Url, PackageError> {
        let (own, usual) = match ecosystem {
            Ecosystem::Pypi => (&self.pypi, Registry::Pypi),
            Ecosystem::Npm => (&self.npm, Registry::Npm),
            Ecosystem::Go => (&self.go, Registry::Go),
            Ecosystem::Crates => (&self.crates, Registry::Crates),
        };
        let text = own.clone().unwrap_or_else(|| registry_base(usual));
        let text = match ecosystem {
            // A list, of which only an address can be asked.
            Ecosystem::Go => {
                let mut parts = text.split([',', '|']);
                parts
                    .find(|it| it.trim().starts_with("http"))
                    .unwrap_or(&text)
            }
            // As cargo writes it.
            Ecosystem::Crates => text.trim_start_matches("sparse+"),
            _ => &text,
        };
        let text = format!("{}/", text.trim().trim_end_matches('/'));
        let url = Url::parse(&text).ok();
        let good = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        good.ok_or(PackageError::BadRegistry(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_what_it_does_not_say_is_usual() {
        let table = config::Packages {
            pypi: Some("https://mirror.example/simple".to_owned()),
            size: Some(1 << 30),
            offline: true,
            ..config::Packages::default()
        };
        let settings = Settings::new(table, Some(Path::new("/cache")));
        assert_eq!(
            (
                settings.size,
                settings.offline,
                settings.detect,
                settings.build
            ),
            (1 << 30, true, true, false)
        );
        assert_eq!(
            settings.folder.as_deref(),
            Some(Path::new("/cache/packages"))
        );
        let url = settings.registry(Ecosystem::Pypi).unwrap();
        assert_eq!(url.as_str(), "https://mirror.example/simple/");
        let go = Some("direct, https://mirror.example/go|off".to_owned());
        let settings = Settings { go, ..settings };
        let url = settings.registry(Ecosystem::Go).unwrap();
        assert_eq!(url.as_str(), "https://mirror.example/go/");
        let go = Some("off".to_owned());
        let settings = Settings { go, ..settings };
        assert!(settings.registry(Ecosystem::Go).is_err());
        let usual = Settings::new(config::Packages::default(), None);
        assert_eq!(
            (usual.size, usual.offline, usual.folder),
            (SIZE, false, None)
        );
    }
}
