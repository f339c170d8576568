//! What a program needs to call the tools of upstream servers: a script of its language, loaded before it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cell::Launch;
use crate::language::{Binding, Runtime};
use crate::loopback::PORT;
use crate::request::{CellPath, InputFile};

/// Where scripts of ours are, in the workspace.
pub const FOLDER: &str = ".home/.hotcell";

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
    let fill = |text: &String| {
        text.replace("{binding}", &file)
            .replace("{folder}", &folder)
    };
    for (name, value) in &binding.env {
        set_variable(&mut launch.env, name, &fill(value));
    }
    if let Some(prestart) = &mut launch.prestart {
        prestart.prelude = fill(&binding.prelude);
    }
    let preload = runtime.way.preload.iter().map(fill);
    insert_before(&mut launch.argv, program, preload);
    let names = Value::from(servers.to_vec()).to_string();
    let text = binding.script.text.replace("{servers}", &names);
    let text = text.replace("{port}", &PORT.to_string());
    let path = format!("{FOLDER}/{}", binding.script.name);
    let path = CellPath::parse(&path).expect("a plain path");
    // The program's caller cannot put another in its place.
    launch.files.retain(|file| file.path != path);
    launch.files([InputFile::from_bytes(path, text)])
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
