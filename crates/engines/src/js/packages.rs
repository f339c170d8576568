//! Packages of npm in a folder `node_modules`: which file of one an import or a `require`
//! means, and whether that file is a module, as node decides both.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use super::Files;
use super::modules::{index, named_file, tidy};

/// Far more than any description of a package.
const LONGEST: u64 = 1 << 20;
const MANIFEST: &str = "package.json";
const FOLDER: &str = "node_modules";

/// How a file is asked for: a package may have two of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Import,
    Require,
}

impl Files {
    /// The file that a bare name means in a file `from`: of a package, or by the package's own
    /// names for its parts, which begin with `#`.
    pub fn of_package(&self, from: &Path, name: &str, asked: Asked) -> Option<PathBuf> {
        if name.starts_with('#') {
            let (root, manifest) = self.package_of(from)?;
            let target = target(manifest.get("imports")?, name, asked)?;
            return match target.as_bytes() {
                [b'.', ..] => self.file(&root.join(target), asked),
                // It leads to a file or to another package, and not in a circle.
                [b'#', ..] => None,
                _ => self.of_package(from, &target, asked),
            };
        }
        let (package, rest) = split(name)?;
        let mut folders = from.ancestors().skip(1);
        let root = folders.find_map(|folder| {
            let root = folder.join(FOLDER).join(&package);
            root.is_dir().then_some(root)
        })?;
        let manifest = self.manifest(&root);
        let exports = manifest.as_ref().and_then(|it| it.get("exports"));
        match exports.filter(|exports| !exports.is_null()) {
            Some(exports) => {
                let target = target(exports, &format!(".{rest}"), asked)?;
                self.file(&root.join(target), asked)
            }
            None => self.file(&root.join(rest.trim_start_matches('/')), asked),
        }
    }

    /// The file that a package without `exports` names for its folder.
    pub fn entry(&self, folder: &Path, asked: Asked) -> Option<PathBuf> {
        let manifest = self.manifest(folder)?;
        let fields: &[&str] = match asked {
            Asked::Import => &["module", "main"],
            Asked::Require => &["main"],
        };
        let named = fields
            .iter()
            .filter_map(|field| manifest.get(*field)?.as_str());
        named
            .map(|file| tidy(&folder.join(file)))
            .find_map(|path| named_file(&path).or_else(|| index(&path)))
    }

    /// Whether a package's file is a module, if that can be told without reading it closely.
    pub fn kind(&self, path: &Path, source: &str) -> Option<bool> {
        match path.extension()?.to_str()? {
            "mjs" => return Some(true),
            "cjs" => return Some(false),
            "js" => {}
            _ => return None,
        }
        let manifest = self.package_of(path).map(|(_, manifest)| manifest);
        let kind = manifest.as_ref().and_then(|it| it.get("type")?.as_str());
        match kind {
            Some("module") => Some(true),
            // Files for bundlers are modules, whatever their package says.
            _ if !source.contains("import") && !exports(source) => Some(false),
            _ => None,
        }
    }

    /// The package that a file belongs to.
    fn package_of(&self, path: &Path) -> Option<(PathBuf, Rc<Value>)> {
        let folders = path.ancestors().skip(1);
        let own = folders.take_while(|folder| folder.file_name().is_none_or(|it| it != FOLDER));
        own.into_iter()
            .find_map(|folder| Some((folder.to_owned(), self.manifest(folder)?)))
    }

    /// What a package says of itself; what cannot be read says nothing.
    fn manifest(&self, folder: &Path) -> Option<Rc<Value>> {
        let mut known = self.manifests.borrow_mut();
        let entry = known.entry(folder.to_owned());
        let read = || {
            let path = folder.join(MANIFEST);
            let length = fs::metadata(&path).ok()?.len();
            let text = fs::read(path).ok().filter(|_| length <= LONGEST)?;
            serde_json::from_slice(&text).ok().map(Rc::new)
        };
        entry.or_insert_with(read).clone()
    }
}

/// Whether a source may have the word `export`: what scripts have is `exports`.
fn exports(source: &str) -> bool {
    let mut found = source.match_indices("export");
    found.any(|(at, word)| source.as_bytes().get(at + word.len()) != Some(&b's'))
}

/// Whether a file came with a package.
pub fn is_installed(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == FOLDER)
}

/// `npm:name@1/part` as node and others know it: `name/part`.
pub fn bare(name: &str) -> Option<String> {
    let (package, rest) = split(name.strip_prefix("npm:").map(|_| name)?)?;
    Some(package + &rest)
}

/// `@scope/name/part` as the package and what follows it; of `npm:name@1/part` no version.
fn split(name: &str) -> Option<(String, String)> {
    let is_npm = name.starts_with("npm:");
    let name = name.strip_prefix("npm:").unwrap_or(name);
    let name = name.strip_prefix('/').unwrap_or(name);
    let slashes = if name.starts_with('@') { 2 } else { 1 };
    let end = name.match_indices('/').nth(slashes - 1);
    let (package, rest) = name.split_at(end.map_or(name.len(), |(at, _)| at));
    let version = package.rfind('@').filter(|at| is_npm && *at > 0);
    let package = &package[..version.unwrap_or(package.len())];
    let is_name =
        !package.is_empty() && !package.contains([':', '\\']) && !package.starts_with('.');
    is_name.then(|| (package.to_owned(), rest.to_owned()))
}

/// Where `exports` or `imports` lead for a name.
///
/// What is written for node alone comes last: it uses more of node than there is here.
fn target(map: &Value, name: &str, asked: Asked) -> Option<String> {
    let named =
        |it: &serde_json::Map<String, Value>| it.keys().any(|key| key.starts_with(['.', '#']));
    let (value, star) = match map.as_object().filter(|it| named(it)) {
        Some(map) => match map.get(name) {
            Some(value) => (value, ""),
            None => pattern(map, name)?,
        },
        None => (map, (name == ".").then_some("")?),
    };
    let word = match asked {
        Asked::Import => "import",
        Asked::Require => "require",
    };
    let found = pick(value, &[word, "default"]);
    let found = found.or_else(|| pick(value, &[word, "node", "default"]))?;
    Some(found.replace('*', star))
}

/// The longest pattern that fits, and what its `*` stands for.
fn pattern<'a>(
    map: &'a serde_json::Map<String, Value>,
    name: &'a str,
) -> Option<(&'a Value, &'a str)> {
    let fits = map.iter().filter_map(|(key, value)| {
        let (before, after) = key.split_once('*')?;
        let star = name.strip_prefix(before)?.strip_suffix(after)?;
        (!star.is_empty()).then_some((before.len(), value, star))
    });
    let (_, value, star) = fits.max_by_key(|it| it.0)?;
    Some((value, star))
}

/// The first target whose conditions all hold, in the package's own order.
fn pick<'a>(value: &'a Value, conditions: &[&str]) -> Option<&'a str> {
    match value {
        Value::String(target) => Some(target),
        Value::Array(targets) => targets.iter().find_map(|it| pick(it, conditions)),
        Value::Object(map) => map
            .iter()
            .filter(|(condition, _)| conditions.contains(&condition.as_str()))
            .find_map(|(_, value)| pick(value, conditions)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_a_package_and_a_part_of_it() {
        for (name, expected) in [
            ("a", Some(("a", ""))),
            ("a/b/c.js", Some(("a", "/b/c.js"))),
            ("@s/a/b", Some(("@s/a", "/b"))),
            ("npm:a@^1.2/b", Some(("a", "/b"))),
            ("npm:@s/a@1", Some(("@s/a", ""))),
            ("npm:/a@1/b", Some(("a", "/b"))),
            ("https://x/y", None),
            ("jsr:@a/b", None),
            ("", None),
            ("npm:", None),
            ("npm:@", Some(("@", ""))),
        ] {
            let found = split(name);
            let found = found.as_ref().map(|(a, b)| (a.as_str(), b.as_str()));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn conditions_are_taken_in_the_packages_order_and_nodes_own_last() {
        let exports = json!({
            ".": { "types": "./t.d.ts", "node": "./node.js", "import": "./m.mjs", "require": "./c.cjs" },
            "./only": { "node": { "import": "./n.mjs" } },
            "./list": [{ "other": "./x" }, "./l.js"],
            "./gone/*": null,
            "./*": "./lib/*.js",
            "./deep/*.js": { "default": "./deep/*.mjs" },
        });
        let import = |name| target(&exports, name, Asked::Import);
        assert_eq!(import(".").as_deref(), Some("./m.mjs"));
        assert_eq!(
            target(&exports, ".", Asked::Require).as_deref(),
            Some("./c.cjs")
        );
        assert_eq!(import("./only").as_deref(), Some("./n.mjs"));
        assert_eq!(import("./list").as_deref(), Some("./l.js"));
        assert_eq!(import("./a/b").as_deref(), Some("./lib/a/b.js"));
        assert_eq!(import("./deep/x.js").as_deref(), Some("./deep/x.mjs"));
        assert_eq!(import("./gone/x"), None);
        assert_eq!(
            target(&json!("./x.js"), ".", Asked::Import).as_deref(),
            Some("./x.js")
        );
        assert_eq!(target(&json!("./x.js"), "./y", Asked::Import), None);
        let own = json!({ "#a": { "node": "./n.js", "default": "./d.js" }, "#b/*": "other/*" });
        assert_eq!(target(&own, "#a", Asked::Import).as_deref(), Some("./d.js"));
        assert_eq!(
            target(&own, "#b/c", Asked::Import).as_deref(),
            Some("other/c")
        );
    }
}
