//! A program of `tests/same`: its code, and how it is started.
//!
//! Comment lines among the first three say that: `args: ["a"]`, `stdin: "text"`,
//! `files: {"name": "text" or {"base64": ".."}}`, `needs: "module"`, each in JSON.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub struct Program {
    /// The name of its file in `tests/same`.
    pub name: String,
    /// UTF-8, as all that comes over MCP.
    pub code: String,
    pub args: Vec<String>,
    pub stdin: Option<String>,
    pub files: Map<String, Value>,
    /// A module that must be installed.
    pub needs: Option<String>,
}

impl Program {
    pub fn of(name: &str, code: &str) -> Self {
        Self {
            args: header(code, "args").map_or_else(Vec::new, |args| {
                serde_json::from_value(args).unwrap_or_else(|_| panic!("{name}: args are a list"))
            }),
            stdin: header(code, "stdin").map(|stdin| text(name, stdin)),
            files: header(code, "files").map_or_else(Map::new, |files| match files {
                Value::Object(files) => files,
                _ => panic!("{name}: files are an object"),
            }),
            needs: header(code, "needs").map(|needs| text(name, needs)),
            name: name.to_owned(),
            code: code.to_owned(),
        }
    }

    /// All programs of a folder with one of these extensions, by name.
    pub fn read_all(folder: &Path, extensions: &[&str]) -> Vec<Self> {
        let mut programs: Vec<Self> = fs::read_dir(folder)
            .expect("the folder is there")
            .filter_map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_name().into_string().expect("a plain name");
                let wanted = extensions.contains(&name.rsplit('.').next()?);
                let read = || fs::read_to_string(entry.path()).expect("UTF-8");
                wanted.then(|| Self::of(&name, &read()))
            })
            .collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        programs
    }

    pub fn extension(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// What its file is called in the workspace.
    pub fn file(&self) -> String {
        format!("main.{}", self.extension())
    }

    /// Whether it would be called so without being asked: a call over MCP names no file.
    pub fn has_usual_name(&self) -> bool {
        ["py", "js", "sh", "pl", "rb", "php"].contains(&self.extension())
    }

    /// Writes its files, and it beside them, into an empty folder.
    pub fn place(&self, folder: &Path) {
        fs::write(folder.join(self.file()), &self.code).expect("the program");
        for (path, content) in &self.files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let bytes = match content {
                Value::String(text) => text.clone().into_bytes(),
                other => STANDARD
                    .decode(other["base64"].as_str().expect("base64"))
                    .expect("base64"),
            };
            fs::write(path, bytes).expect("a file");
        }
    }
}

fn header(code: &str, key: &str) -> Option<Value> {
    let code = code.trim_start_matches('\u{feff}');
    code.lines().take(3).find_map(|line| {
        let comment = line.strip_prefix("//").or(line.strip_prefix('#'))?;
        let json = comment.trim().strip_prefix(key)?.strip_prefix(':')?;
        Some(serde_json::from_str(json).unwrap_or_else(|error| panic!("{line}: {error}")))
    })
}

fn text(name: &str, value: Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{name}: {value} is no text"))
        .to_owned()
}
