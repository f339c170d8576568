//! What a language's programs name that may lie beside them: modules, headers, other scripts.

use std::path::Path;

use serde::Deserialize;

use super::Rule;

/// `[beside]` of a definition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Patterns whose group is a name that the program asks for, or several with commas between them.
    pub names: Vec<Rule>,
    /// Where that may lie: the first that is there is taken, a folder with all that is in it. `{name}` is the name, `{top}` its first part,
    /// `{stem}` the name without its ending, and `{tail}` in turn what is left of it without its first parts.
    pub paths: Vec<String>,
    /// What is taken too then, if it is there.
    #[serde(default)]
    pub also: Vec<String>,
    /// Whether dots divide a name, and not slashes.
    #[serde(default)]
    pub dots: bool,
    /// Whether names are seen from the file that has them, and not from the program.
    #[serde(default)]
    pub relative: bool,
}

/// Names longer than this are none.
const LONGEST: usize = 255;
/// More are not looked for in one file.
const MOST: usize = 1000;

/// Where something may lie that a program names, as paths below a folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The first of these that is there.
    pub one_of: Vec<String>,
    pub also: Vec<String>,
}

impl Beside {
    /// What a file of the program names, by our patterns or among these modules; `at` is its path.
    pub fn wanted(&self, text: &str, modules: &[String], at: &Path) -> Vec<Wanted> {
        let folder = at.parent().filter(|_| self.relative);
        let folder = folder.and_then(Path::to_str).unwrap_or_default();
        let lists = self.names.iter().flat_map(|rule| rule.all(text)).take(MOST);
        let names = lists.flat_map(|list| list.split(','));
        let names = names.filter_map(|name| name.split_whitespace().next());
        let names = names.chain(modules.iter().map(String::as_str).take(MOST));
        let names = names.filter(|name| name.len() <= LONGEST && !name.starts_with('/'));
        let wanted = |name: &str| {
            let name = match self.dots {
                true => name.replace('.', "/"),
                false => name.to_owned(),
            };
            let place = |path: &String| fill(path, &name).into_iter();
            let place = |path| place(path).filter_map(|path| join(folder, &path));
            Wanted {
                one_of: self.paths.iter().flat_map(place).collect(),
                also: self.also.iter().flat_map(place).collect(),
            }
        };
        names.map(wanted).collect()
    }
}

/// The paths that a path of a definition is for a name.
fn fill(path: &str, name: &str) -> Vec<String> {
    let top = name.split('/').next().unwrap_or_default();
    let stem = match name.rfind('.').filter(|at| !name[*at..].contains('/')) {
        Some(at) => &name[..at],
        None => name,
    };
    let path = path.replace("{name}", name).replace("{top}", top);
    let path = path.replace("{stem}", stem);
    if !path.contains("{tail}") {
        return vec![path];
    }
    let tails = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
    tails.map(|tail| path.replace("{tail}", tail)).collect()
}

/// A path seen from a folder, without `.` and `..`; none if it leaves what both are below.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths_that_stay_below_the_folder() {
        assert_eq!(join("a/b", "../c.js").as_deref(), Some("a/c.js"));
        assert_eq!(join("", "./c.js").as_deref(), Some("c.js"));
        assert_eq!(join("a", "../../c.js"), None);
        let beside = Beside {
            names: vec![Rule::new(r"^import (.+)$")],
            paths: vec!["{name}.py".to_owned(), "{top}".to_owned()],
            also: vec!["{stem}.c".to_owned()],
            dots: true,
            relative: false,
        };
        let found = beside.wanted(
            "import a.b as c, d\nx\nimport /etc/passwd\n",
            &["e".to_owned()],
            Path::new("main.py"),
        );
        let wanted = |one_of: [&str; 2], also: &str| Wanted {
            one_of: one_of.map(str::to_owned).to_vec(),
            also: vec![also.to_owned()],
        };
        assert_eq!(
            found,
            [
                wanted(["a/b.py", "a"], "a/b.c"),
                wanted(["d.py", "d"], "d.c"),
                wanted(["e.py", "e"], "e.c"),
            ]
        );
    }
}
