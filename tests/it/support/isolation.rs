//! The same tests behind other walls: those of a container, or of gVisor's kernel.
//!
//! `HOTCELL_TEST_ISOLATION=podman cargo test --test it -- attacks:: same:: proof:: packages::` runs whole suites there; `containers::suites` runs
//! parts of them in every run of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{Hotcell, PATH, open_to_all};

/// The configuration of a [`Hotcell`].
pub const CONFIG: &str = "home/.config/hotcell/config.toml";

/// What `HOTCELL_TEST_ISOLATION` names.
pub fn chosen() -> Option<&'static str> {
    let named = std::env::var("HOTCELL_TEST_ISOLATION").ok()?;
    let known = ["podman", "docker", "gvisor"].into_iter();
    let found = known.into_iter().find(|it| *it == named);
    Some(found.unwrap_or_else(|| panic!("no tests for {named}")))
}

/// The arguments that choose it.
pub fn arguments(isolation: Option<&'static str>) -> Vec<&'static str> {
    isolation.map_or(Vec::new(), |it| vec!["--isolation", it])
}

/// Where `runsc` is, for any user: on the tests' PATH, or one that `scripts/test` has built.
pub fn runsc() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let usual = PATH.split(':').map(|it| Path::new(it).join("runsc"));
        let named = std::env::var_os("HOTCELL_RUNSC").map(PathBuf::from);
        let named = named.filter(|it| it.exists()).map(|it| open_copy(&it));
        named.or_else(|| usual.into_iter().find(|it| it.exists()))
    };
    FOUND.get_or_init(find).as_deref()
}

/// A copy that everybody can reach: what is in a cache may not be.
fn open_copy(file: &Path) -> PathBuf {
    let folder = tempfile::Builder::new().prefix("it-tool-").tempdir();
    let folder = folder.expect("a folder").keep();
    let copy = folder.join("runsc");
    if fs::hard_link(file, &copy).is_err() {
        fs::copy(file, &copy).expect("a copy");
    }
    open_to_all(&folder);
    open_to_all(&copy);
    copy
}

/// The tests' PATH, with `runsc` where there is one.
pub fn path() -> String {
    let folder = runsc().and_then(Path::parent);
    folder.map_or(PATH.to_owned(), |it| format!("{}:{PATH}", it.display()))
}

impl Hotcell {
    /// The same with these walls for all its programs.
    pub fn within(mut self, isolation: &'static str) -> Self {
        self.isolation = Some(isolation);
        self.write(CONFIG, "");
        self
    }

    /// The PATH that it is started with.
    pub fn path(&self) -> String {
        match self.isolation {
            Some(_) => path(),
            None => PATH.to_owned(),
        }
    }
}
