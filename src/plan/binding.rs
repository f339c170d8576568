//! What a program needs to call the tools of upstream servers: a script of its language, loaded before it.

use serde_json::Value;

use crate::cell::Launch;
use crate::language::{Binding, Runtime};
use crate::loopback::PORT;
use crate::request::{CellPath, InputFile};

/// Where the script is, in the workspace.
const FOLDER: &str = ".home/.hotcell";

/// Lets the program, which is `program` on its command line, call these servers by their names.
pub fn bind(
    mut launch: Launch,
    binding: &Binding,
    runtime: &Runtime,
    program: &str,
    servers: &[String],
) -> Launch {
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
        let own = launch.env.get(name).cloned().unwrap_or_default();
        launch.env.insert(name.clone(), fill(value, &own));
    }
    if let Some(prestart) = &mut launch.prestart {
        prestart.prelude = fill(&binding.prelude, "");
    }
    if let Some(at) = launch.argv.iter().position(|word| word == program) {
        let preload = runtime.way.preload.iter().map(|word| fill(word, ""));
        launch.argv.splice(at..at, preload);
    }
    let names = Value::from(servers.to_vec()).to_string();
    let text = binding.script.text.replace("{servers}", &names);
    let text = text.replace("{port}", &PORT.to_string());
    let path = format!("{FOLDER}/{}", binding.script.name);
    let path = CellPath::parse(&path).expect("a plain path");
    // The program's caller cannot put another in its place.
    launch.files.retain(|file| file.path != path);
    launch.files([InputFile::from_bytes(path, text)])
}
