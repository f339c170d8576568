//! What a program needs to call the tools of upstream servers: a script of its language, loaded before it; or else a command.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cell::{Launch, Prestart};
use crate::language::{Binding, Runtime, Script};
use crate::loopback::PORT;
use crate::request::{CellPath, InputFile};
use crate::upstream::ServerName;

/// Where scripts of ours are, in the workspace.
pub const FOLDER: &str = ".home/.hotcell";
/// Bytes of what a prelude says of the servers: it is a part of one small message.
const LONGEST_FACTS: usize = 2000;
/// The program `mcp`, which the build script makes.
const COMMAND: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/command/mcp"));

/// A program that may call servers by their names.
pub struct Bound<'a> {
    pub binding: &'a Binding,
    pub runtime: &'a Runtime,
    /// The program on its command line, and its text.
    pub program: &'a str,
    pub code: &'a [u8],
    pub servers: &'a [ServerName],
    /// The names of all that are configured.
    pub configured: &'a [String],
    /// Whether the modules `mcp` and the like are ours: it has none of its own.
    pub is_ours: bool,
}

impl Bound<'_> {
    /// Lets the program call its servers.
    pub fn bind(&self, mut launch: Launch) -> Launch {
        let prelude = match self.is_loaded_by_words() {
            // Its command line says it all.
            true => String::new(),
            false => self.fill(self.prelude(&launch)),
        };
        let facts = self.facts().to_string();
        let known = if facts.len() <= LONGEST_FACTS {
            &facts
        } else {
            ""
        };
        let prelude = prelude.replace("{facts}", known);
        if let Some(prestart) = &mut launch.prestart {
            prestart.prelude = prelude;
        }
        self.load(&mut launch.env, &mut launch.argv);
        let scripts = [&self.binding.script].into_iter();
        let scripts = scripts.chain(&self.binding.beside);
        let mut files: Vec<InputFile> = scripts
            .map(|script| InputFile::from_bytes(path(script.name), script.text))
            .collect();
        files.push(InputFile::from_bytes(path("servers.json"), facts));
        if self.has_modules() {
            let modules = self.modules();
            let paths = modules.iter().map(|file| file.path.clone());
            if let Some(wanted) = &mut launch.changes {
                wanted.except.extend(paths);
            }
            files.extend(modules);
        }
        place(launch, files)
    }

    /// What a runtime that waits is told.
    fn prelude(&self, launch: &Launch) -> &str {
        let binding = self.binding;
        // One for programs that look closely has loaded nothing.
        let is_exact = |it: &Prestart| it.zygote.leave.is_empty();
        let is_loaded = launch.prestart.as_ref().is_some_and(|it| !is_exact(it));
        match is_loaded && !binding.loaded.is_empty() {
            true => &binding.loaded,
            false => &binding.prelude,
        }
    }

    /// Whether its command line has the runtime load the script, and no prelude does.
    pub fn is_loaded_by_words(&self) -> bool {
        let way = &self.runtime.way;
        let has_prelude = !self.binding.prelude.is_empty() && !way.without_prelude;
        !way.preload.is_empty() && !has_prelude
    }

    /// Whether the program starts what only a new runtime can tell of the servers.
    pub fn wants_new_runtime(&self) -> bool {
        let code = String::from_utf8_lossy(self.code);
        self.binding.cold.iter().any(|word| code.contains(word))
    }

    /// Where the script is, in the workspace.
    pub fn script(&self) -> CellPath {
        path(self.binding.script.name)
    }

    /// Has the runtime load the script, by its variables and its command line.
    pub fn load(&self, env: &mut BTreeMap<String, String>, argv: &mut Vec<String>) {
        for (name, value) in &self.binding.env {
            set_variable(env, name, &self.fill(value));
        }
        let way = &self.runtime.way;
        let preload = way.preload.iter().map(|word| self.fill(word));
        insert_before(argv, self.program, preload);
        if self.has_modules() {
            insert_before(argv, self.program, way.modules.iter().cloned());
        }
    }

    fn has_modules(&self) -> bool {
        self.is_ours && {
            let code = String::from_utf8_lossy(self.code);
            self.binding.imports_module(&code)
        }
    }

    /// A text of the binding with the places of its scripts.
    fn fill(&self, text: &str) -> String {
        let folder = format!("/workspace/{FOLDER}");
        let file = format!("{folder}/{}", self.binding.script.name);
        text.replace("{binding}", &file)
            .replace("{folder}", &folder)
    }

    /// What programs import.
    fn modules(&self) -> Vec<InputFile> {
        let aliases: Vec<&str> = self.servers.iter().map(|it| it.alias.as_str()).collect();
        let typed = |it: &ServerName| match it.types.as_str() {
            "" | "{\n}" => format!("{}: Server", it.alias),
            types => format!("{}: {types}", it.alias),
        };
        let typed: Vec<String> = self.servers.iter().map(typed).collect();
        let module = |script: &Script| {
            let path = CellPath::parse(script.name).expect("a plain path");
            let text = script.text.replace("{aliases}", &aliases.join(", "));
            let text = text.replace("{typed_aliases}", &typed.join(", "));
            InputFile::from_bytes(path, text)
        };
        self.binding.modules.iter().map(module).collect()
    }

    /// What the scripts read: numbers for truths, so that it is a literal in more languages than one.
    fn facts(&self) -> Value {
        let named = |it: &ServerName| json!([it.alias, it.name]);
        let servers: Value = self.servers.iter().map(named).collect();
        let available: Value = self.servers.iter().map(|it| it.name.clone()).collect();
        let env = json!({
            "MCP_AVAILABLE_SERVERS": available.to_string(),
            "MCP_DISCOVERED_SERVERS": json!(self.configured).to_string(),
        });
        let is_given = |name: &&String| self.servers.iter().any(|it| it.name == **name);
        let others = self.configured.iter().filter(|name| !is_given(name));
        let plain = |name: &String| -> String {
            let letters = name.chars().filter(|it| it.is_alphanumeric());
            letters.flat_map(char::to_lowercase).collect()
        };
        let others: Value = others.map(plain).collect();
        let code = String::from_utf8_lossy(self.code);
        let looks = self.binding.own_names.iter().any(|it| code.contains(it));
        let (is_ours, looks) = (i32::from(self.is_ours), i32::from(looks));
        json!({ "servers": servers, "port": PORT, "is_ours": is_ours, "own_names": looks, "others": others, "env": env })
    }
}

/// Has a program of any language find the command `mcp`; a pre-started runtime must know that from its start.
pub fn find_command(launch: &mut Launch) {
    let folder = format!("/workspace/{FOLDER}/bin");
    set_variable(&mut launch.env, "PATH", &format!("{folder}:{{own}}"));
}

/// Gives it the command.
pub fn place_command(launch: Launch) -> Launch {
    let mut command = InputFile::from_bytes(path("bin/mcp"), COMMAND);
    command.mode = 0o755;
    place(launch, vec![command])
}

/// Adds files of ours: the program's caller cannot put others in their place.
fn place(mut launch: Launch, files: Vec<InputFile>) -> Launch {
    let is_free = |file: &InputFile| !files.iter().any(|own| own.is_in_the_way_of(file));
    launch.files.retain(is_free);
    launch.files(files)
}

fn path(name: &str) -> CellPath {
    CellPath::parse(&format!("{FOLDER}/{name}")).expect("a plain path")
}

/// Sets a variable, in which `{own}` is what it had before.
pub fn set_variable(env: &mut BTreeMap<String, String>, name: &str, value: &str) {
    let own = env.get(name).cloned().unwrap_or_default();
    let value = value.replace("{own}", &own);
    env.insert(name.to_owned(), value.trim_matches([' ', ':']).to_owned());
}

/// Puts words before the program's file on its command line.
pub fn insert_before(argv: &mut Vec<String>, program: &str, words: impl Iterator<Item = String>) {
    if let Some(at) = argv.iter().position(|word| word == program) {
        argv.splice(at..at, words);
    }
}
