//! What a program needs to call the tools of other servers: a script of its language, loaded before it.

use serde_json::Value;

use super::{PORT, RunPlan, file_argument, zygote};
use crate::language::Definition;
use crate::request::{CellPath, InputFile};

/// Where the script is, in the workspace.
const FOLDER: &str = ".home/.hotcell";

impl RunPlan {
    /// Lets the program call these servers by their names.
    pub fn bind(&mut self, servers: Vec<String>, definition: &Definition) {
        if servers.is_empty() {
            return;
        }
        let Some(binding) = &definition.binding else {
            let language = &definition.name;
            self.notes.push(format!(
                "programs in {language} cannot call the tools of servers"
            ));
            return;
        };
        if binding.wake.is_empty() {
            self.zygote = None;
        }
        // With packages of its own it has one that knows no package.
        if self.zygote.is_some() && self.packages.is_none() {
            let code = [&self.source.bytes[..], b"\n", binding.imports.as_bytes()].concat();
            let is_alone = self.files.is_empty();
            self.zygote = zygote(definition, &self.argv, &self.env, &code, is_alone);
        }
        let folder = format!("/workspace/{FOLDER}");
        let file = format!("{folder}/{}", binding.script.name);
        let fill = |text: &str, own: &str| {
            let text = text
                .replace("{binding}", &file)
                .replace("{folder}", &folder);
            text.replace("{own}", own)
                .trim_matches([' ', ':'])
                .to_owned()
        };
        for (name, value) in &binding.env {
            let own = self.env.remove(name).unwrap_or_default();
            self.env.insert(name.clone(), fill(value, &own));
        }
        self.wake = fill(&binding.wake, "");
        let program = file_argument(&self.source.path);
        if let Some(at) = self.argv.iter().position(|word| *word == program) {
            let preload = self.runtime.way.preload.iter().map(|word| fill(word, ""));
            self.argv.splice(at..at, preload);
        }
        let names = Value::from(servers.clone()).to_string();
        let text = binding.script.text.replace("{servers}", &names);
        let text = text.replace("{port}", &PORT.to_string());
        let path = format!("{FOLDER}/{}", binding.script.name);
        let path = CellPath::parse(&path).expect("a plain path");
        self.files.retain(|file| file.path != path);
        self.files.push(InputFile::from_bytes(path, text));
        self.servers = servers;
    }
}
