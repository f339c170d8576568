//! What a runtime's own packages were built for, and must find in that version.
//!
//! A set of packages comes before what the runtime has. If the set brings another version of a library whose binary interface the
//! runtime's own packages use, those break at their import, even if only a package of the set imports them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::requirement::normal;
use super::wishes::is_present;
use super::{Ecosystem, Requirement};

/// Of these packages those that the runtime has together with a module that was built for it: in exactly the version that is there.
pub fn kept(folders: &[PathBuf], keep: &BTreeMap<String, Vec<String>>) -> Vec<Requirement> {
    let is_needed = |modules: &&Vec<String>| modules.iter().any(|it| is_present(folders, it));
    let needed = keep.iter().filter(|(_, modules)| is_needed(modules));
    let exact = |(name, _): (&String, &Vec<String>)| {
        let version = folders.iter().find_map(|it| version(it, name))?;
        Requirement::parse(&format!("{name}=={version}"), Ecosystem::Pypi).ok()
    };
    needed.filter_map(exact).collect()
}

/// The version of a package in a folder that the runtime imports from: its description has it in its name.
fn version(folder: &Path, package: &str) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.find_map(|file| {
        let whole = file
            .strip_suffix(".dist-info")
            .or(file.strip_suffix(".egg-info"))?;
        let mut parts = whole.split('-');
        let is_it = normal(parts.next()?) == normal(package);
        parts.next().filter(|_| is_it).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_keeps_its_version_where_something_else_was_built_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let keep = BTreeMap::from([("numpy".to_owned(), vec!["pandas".to_owned()])]);
        let found = || {
            let found = kept(&[folder.path().to_owned()], &keep);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let add = |name: &str| fs::create_dir(folder.path().join(name)).unwrap();
        assert_eq!(found(), [""; 0]);
        for name in ["numpydoc-9.dist-info", "NumPy-1.24.2.egg-info", "numpy"] {
            add(name);
        }
        assert_eq!(found(), [""; 0], "nothing needs it");
        add("pandas");
        assert_eq!(found(), ["numpy==1.24.2"]);
    }
}
