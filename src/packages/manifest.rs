//! What a program or a file says that it needs, in so many words: the block of a
//! Python script (PEP 723), a list of requirements, a module's `go.mod`, `Cargo.toml`
//! and `package.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::requirement::{BadRequirement, Ecosystem, Requirement};

/// A line that cannot be used, or a block that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadList {
    #[error("line {line} of {file}: {source}")]
    Line {
        file: String,
        line: usize,
        source: BadRequirement,
    },
    #[error("line {line} of {file} is an option: only packages can be named there")]
    Option { file: String, line: usize },
    #[error("{file} cannot be read: {why}")]
    Unread { file: String, why: String },
    #[error(
        "{file}: `{name}` is not a package name with versions; paths and URLs are not supported"
    )]
    Elsewhere { file: String, name: String },
    #[error("{file}: {source}")]
    InFile {
        file: String,
        source: BadRequirement,
    },
    #[error("the `# /// script` block of the program cannot be read: {0}")]
    Block(String),
    #[error("the `# /// script` block of the program: {0}")]
    InBlock(BadRequirement),
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
}

/// What we can do as a manifest says it. Features that are usual and not wanted are had too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CrateTable {
    version: Option<String>,
    #[serde(default)]
    features: Vec<String>,
    #[serde(rename = "default-features")]
    _usual: Option<bool>,
}

#[derive(Deserialize)]
struct Metadata {
    dependencies: Option<Vec<String>>,
}

/// The dependencies of a script's own block; `None` if it has no block, or its block names none.
pub fn block(code: &str) -> Result<Option<Vec<Requirement>>, BadList> {
    const START: &str = "# /// script";
    // Nearly every program ends here.
    let Some(at) = code.match_indices(START).map(|(at, _)| at).find(|at| {
        let is_line = *at == 0 || code.as_bytes()[at - 1] == b'\n';
        is_line
            && code[at + START.len()..]
                .trim_start_matches([' ', '\r'])
                .starts_with('\n')
    }) else {
        return Ok(None);
    };
    let mut text = String::new();
    let mut is_closed = false;
    for line in code[at..].lines().skip(1) {
        if line.trim_end() == "# ///" {
            is_closed = true;
            break;
        }
        match line.strip_prefix('#') {
            Some(rest) => text += rest.strip_prefix(' ').unwrap_or(rest),
            None => break,
        }
        text.push('\n');
    }
    if !is_closed {
        return Ok(None);
    }
    let read = toml::from_str::<Metadata>(&text);
    let metadata = read.map_err(|error| BadList::Block(error.message().replace('\n', " ")))?;
    let Some(dependencies) = metadata.dependencies else {
        return Ok(None);
    };
    let parse = |text: &String| Requirement::parse(text, Ecosystem::Pypi).map_err(BadList::InBlock);
    dependencies
        .iter()
        .map(parse)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// The packages of a list with one to a line, as pip reads it, without its options.
pub fn list(file: &str, text: &str, ecosystem: Ecosystem) -> Result<Vec<Requirement>, BadList> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        // A comment begins at the start of a line or after a space.
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (file, number) = (file.to_owned(), at + 1);
        if line.starts_with('-') {
            return Err(BadList::Option { file, line: number });
        }
        let parsed = Requirement::parse(line, ecosystem);
        found.push(parsed.map_err(|source| BadList::Line {
            file,
            line: number,
            source,
        })?);
    }
    Ok(found)
}

/// A module's own path and what it requires. Only that: what a `go.mod` replaces or excludes is
/// said of files and machines that are not here.
pub fn go_mod(file: &str, text: &str) -> Result<(Option<String>, Vec<Requirement>), BadList> {
    let (mut own, mut found, mut block) = (None, Vec::new(), None);
    for (at, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default();
        let words: Vec<&str> = line
            .split_whitespace()
            .map(|it| it.trim_matches('"'))
            .collect();
        let required = match (block, words.as_slice()) {
            (None, [word, "("]) => {
                block = Some(*word);
                continue;
            }
            (Some(_), [")"]) => {
                block = None;
                continue;
            }
            (None, ["module", path]) => {
                own = Some((*path).to_owned());
                continue;
            }
            (None, ["require", path, version]) | (Some("require"), [path, version]) => {
                format!("{path}@{version}")
            }
            _ => continue,
        };
        let parsed = Requirement::parse(&required, Ecosystem::Go);
        found.push(parsed.map_err(|source| BadList::Line {
            file: file.to_owned(),
            line: at + 1,
            source,
        })?);
    }
    Ok((own, found))
}

/// The `[dependencies]` of a `Cargo.toml`.
pub fn cargo_toml(file: &str, text: &str) -> Result<Vec<Requirement>, BadList> {
    let file = || file.to_owned();
    let read = toml::from_str::<Manifest>(text);
    let manifest = read.map_err(|error| BadList::Unread {
        file: file(),
        why: error.message().replace('\n', " "),
    })?;
    let mut found = Vec::new();
    for (name, dependency) in manifest.dependencies {
        let (versions, features) = match dependency {
            toml::Value::String(versions) => (Some(versions), Vec::new()),
            table => match table.try_into::<CrateTable>() {
                Ok(table) => (table.version, table.features),
                Err(_) => return Err(BadList::Elsewhere { file: file(), name }),
            },
        };
        let features = match features.len() {
            0 => String::new(),
            _ => format!("[{}]", features.join(",")),
        };
        let versions = versions.map_or(String::new(), |it| format!("@{it}"));
        let parsed = Requirement::parse(&format!("{name}{features}{versions}"), Ecosystem::Crates);
        let file = file();
        found.push(parsed.map_err(|source| BadList::InFile { file, source })?);
    }
    Ok(found)
}

/// The versions that a `package.json` has for packages, by their names.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct PackageJson {
    dependencies: BTreeMap<String, String>,
    dev_dependencies: BTreeMap<String, String>,
    optional_dependencies: BTreeMap<String, String>,
    peer_dependencies: BTreeMap<String, String>,
}

impl PackageJson {
    pub fn read(file: &str, text: &str) -> Result<Self, BadList> {
        serde_json::from_str(text).map_err(|error| BadList::Unread {
            file: file.to_owned(),
            why: error.to_string(),
        })
    }

    /// A package in the versions that are listed for it, if it is.
    pub fn versions(&self, file: &str, name: &str) -> Result<Option<Requirement>, BadList> {
        let lists = [
            &self.dependencies,
            &self.optional_dependencies,
            &self.dev_dependencies,
            &self.peer_dependencies,
        ];
        let Some(versions) = lists.iter().find_map(|list| list.get(name)) else {
            return Ok(None);
        };
        let written = match versions.trim() {
            "" => name.to_owned(),
            versions => format!("{name}@{versions}"),
        };
        let parsed = Requirement::parse(&written, Ecosystem::Npm);
        parsed.map(Some).map_err(|_| BadList::Elsewhere {
            file: file.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[Requirement]) -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_block_of_a_script_names_its_packages() {
        let code = "#!/usr/bin/env python\n# /// script\n# requires-python = \">=3.8\"\n# dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n# ///\nimport requests\n";
        assert_eq!(
            names(&block(code).unwrap().unwrap()),
            ["requests<3", "rich"]
        );
        for code in [
            "import a",
            "x = '# /// script'\n",
            "# /// script\n# dependencies = ['a']\n",
            "# /// script\n# dependencies = ['a']\nx\n# ///",
            "# /// scripts\n# dependencies = ['a']\n# ///",
            "# /// script\n# requires-python = '3'\n# ///",
        ] {
            assert_eq!(block(code), Ok(None), "{code}");
        }
        assert!(matches!(
            block("# /// script\n# dependencies = [\n# ///"),
            Err(BadList::Block(_))
        ));
        assert!(matches!(
            block("# /// script\n# dependencies = ['-e .']\n# ///"),
            Err(BadList::InBlock(_))
        ));
    }

    #[test]
    fn a_go_mod_says_what_it_is_and_what_it_requires() {
        let text = "module example.com/own // ours\n\ngo 1.22\n\nrequire a.b/c v1.0.0\nrequire (\n\td.e/f/v2 v2.1.0 // indirect\n)\nreplace a.b/c => ../c\nexclude (\n\tg.h/i v1.0.0\n)\n";
        let (own, found) = go_mod("go.mod", text).unwrap();
        assert_eq!(own.as_deref(), Some("example.com/own"));
        assert_eq!(names(&found), ["a.b/c@v1.0.0", "d.e/f/v2@v2.1.0"]);
        let error = go_mod("go.mod", "module x\nrequire ../a v1.0.0\n").unwrap_err();
        assert!(
            error.to_string().starts_with("line 2 of go.mod: "),
            "{error}"
        );
    }

    #[test]
    fn a_cargo_toml_names_crates_and_nothing_else() {
        let text = "[package]\nname = 'x'\n[dependencies]\nrand = '0.8'\nserde = { version = '1', features = ['derive'], default-features = false }\n[dev-dependencies]\ny = { path = '.' }\n";
        let found = cargo_toml("Cargo.toml", text).unwrap();
        assert_eq!(names(&found), ["rand@0.8", "serde[derive]@1"]);
        for line in [
            "a = { path = '..' }",
            "a = { git = 'https://x' }",
            "a = '../x'",
            "'a b' = '1'",
            "a = {",
            "a = 1",
        ] {
            let bad = format!("[dependencies]\n{line}\n");
            assert!(cargo_toml("Cargo.toml", &bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_has_packages_and_comments_and_nothing_else() {
        let text = "# a list\nrequests >= 2  # why\n\nrich\ntomli; python_version < \"3.11\"\n";
        let found = list("requirements.txt", text, Ecosystem::Pypi).unwrap();
        assert_eq!(
            names(&found),
            ["requests>=2", "rich", "tomli; python_version < \"3.11\""]
        );
        for (text, said) in [
            (
                "rich\n--index-url http://x\n",
                "line 2 of requirements.txt is an option",
            ),
            ("-r other.txt", "line 1 of requirements.txt is an option"),
            (
                "x @ http://y",
                "line 1 of requirements.txt: `x @ http://y` is not a package",
            ),
        ] {
            let error = list("requirements.txt", text, Ecosystem::Pypi).unwrap_err();
            assert!(error.to_string().starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_package_json_has_the_versions_of_what_is_imported() {
        let text = r#"{"name": "x", "dependencies": {"a": "^1.2.0", "@b/c": "~2", "d": "file:../d", "e": ""},
            "devDependencies": {"a": "9", "f": ">=1 <3"}}"#;
        let list = PackageJson::read("package.json", text).unwrap();
        let versions = |name: &str| list.versions("package.json", name);
        for (name, found) in [
            ("a", "a@^1.2.0"),
            ("@b/c", "@b/c@~2"),
            ("e", "e"),
            ("f", "f@>=1 <3"),
        ] {
            assert_eq!(versions(name).unwrap().unwrap().to_string(), found);
        }
        assert_eq!(versions("g"), Ok(None));
        let told = versions("d").unwrap_err().to_string();
        assert!(
            told.starts_with("package.json: `d` is not a package name with versions"),
            "{told}"
        );
        assert!(PackageJson::read("package.json", "{").is_err());
    }
}
