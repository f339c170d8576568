//! Lists `languages/*.toml` for the registry, so that a new language needs no Rust.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=languages");
    let mut names = Vec::new();
    for entry in fs::read_dir("languages")? {
        let name = entry?
            .file_name()
            .into_string()
            .expect("a language's file name is UTF-8");
        if let Some(id) = name.strip_suffix(".toml") {
            names.push(id.to_owned());
        }
    }
    names.sort();

    // The path is put together by the compiler, so no path of this machine is written down.
    let list: String = names
        .iter()
        .map(|id| format!("({id:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/languages/{id}.toml\"))),\n"))
        .collect();
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(
        Path::new(&out).join("languages.rs"),
        format!("&[\n{list}]\n"),
    )
}
