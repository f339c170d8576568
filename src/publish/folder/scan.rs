//! Reads the scripts of a folder.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalog::{Group, Scripts};
use super::complain;
use crate::publish::front_matter::FrontMatter;
use crate::publish::script::Script;
use crate::publish::{HELPERS, Shared};

const MOST_SCRIPTS: usize = 1000;
const LARGEST: u64 = 1 << 20;

/// The scripts of a folder. May wait for the disk.
pub fn scan(path: &Path, shared: &Arc<Shared>) -> io::Result<Scripts> {
    let mut paths: Vec<PathBuf> = fs::read_dir(path)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    // So that of two scripts with one name it is always the same that wins.
    paths.sort();
    let mut found = Scripts::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let (front, code) = match read(&path, name) {
            Ok(Some(script)) => script,
            Ok(None) => continue,
            Err(why) => {
                complain(name, &why);
                continue;
            }
        };
        if found.len() >= MOST_SCRIPTS {
            complain(name, &format!("more than {MOST_SCRIPTS} scripts"));
            break;
        }
        let key = (Group::of(&front.kind), front.key.clone());
        if found.contains_key(&key) {
            complain(name, &format!("`{}` is taken", key.1));
            continue;
        }
        let script = Script::new(front, name.to_owned(), code, shared.clone());
        found.insert(key, script);
    }
    Ok(found)
}

/// A script that is to be published; none if it has no front matter.
pub fn read(path: &Path, name: &str) -> Result<Option<(FrontMatter, Vec<u8>)>, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    // Opening a pipe or a device could wait for ever.
    if !found.is_file() || found.len() > LARGEST {
        return Ok(None);
    }
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut code = Vec::new();
    let read = file.take(LARGEST).read_to_end(&mut code);
    read.map_err(|error| error.to_string())?;
    let Ok(text) = std::str::from_utf8(&code) else {
        return Ok(None);
    };
    let Some(front) = FrontMatter::read(name, text)? else {
        return Ok(None);
    };
    if HELPERS.iter().any(|(helper, _)| *helper == name) || name.ends_with(".json") {
        return Err("a published script cannot have this name".to_owned());
    }
    Ok(Some((front, code)))
}
