//! What the operator has decided about packages: `[packages]` of `config.toml`, and
//! variables over it.

use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::Deserialize;

use super::{Ecosystem, PackageError};
use crate::request::parse_size;
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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    packages: Table,
}

/// `[packages]` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Table {
    pypi: Option<String>,
    npm: Option<String>,
    go: Option<String>,
    crates: Option<String>,
    folder: Option<PathBuf>,
    size: Option<String>,
    offline: bool,
    detect: Option<bool>,
    build: bool,
    age: Option<u64>,
}

/// Some sets of packages are a gigabyte each.
const SIZE: u64 = 8 << 30;
/// Most of what is put into registries to deceive is found within weeks.
const AGE: u64 = 90;

impl Settings {
    /// Reads them; a file that cannot be read says nothing.
    pub fn load(config: Option<&Path>, cache: Option<&Path>) -> Self {
        let text = config.map(|config| std::fs::read_to_string(config.join("config.toml")));
        let file = text.and_then(|text| toml::from_str::<File>(&text.ok()?).ok());
        let table = file.unwrap_or_default().packages;
        let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.trim().is_empty());
        let folder = variable("HOTCELL_PACKAGES_DIR")
            .map(PathBuf::from)
            .or(table.folder)
            .filter(|folder| folder.is_absolute());
        Self {
            pypi: variable("HOTCELL_PYPI_INDEX").or(table.pypi),
            npm: variable("HOTCELL_NPM_REGISTRY").or(table.npm),
            go: variable("HOTCELL_GO_PROXY").or(table.go),
            crates: variable("HOTCELL_CRATES_INDEX").or(table.crates),
            folder: folder.or_else(|| Some(cache?.join("packages"))),
            size: table
                .size
                .and_then(|it| parse_size(&it).ok())
                .unwrap_or(SIZE),
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
        let folder = tempfile::TempDir::new().unwrap();
        let text = "other = 1\n[packages]\npypi = \"https://mirror.example/simple\"\nsize = \"1g\"\noffline = true\n";
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let settings = Settings::load(Some(folder.path()), Some(Path::new("/cache")));
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
        let usual = Settings::load(None, None);
        assert_eq!(
            (usual.size, usual.offline, usual.folder),
            (SIZE, false, None)
        );
    }
}
