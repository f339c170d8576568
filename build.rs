//! Makes the registry's tables of `languages/*.toml`, so that a new language needs no
//! Rust, and so that a run reads one definition and not a hundred.

use std::fmt::Write;
use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=languages");
    let mut languages = Vec::new();
    for entry in fs::read_dir("languages")? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "toml") {
            let id = path.file_stem().and_then(|it| it.to_str());
            let id = id.expect("a language's file name is UTF-8").to_owned();
            languages.push((id, fs::read_to_string(&path)?));
        }
    }
    languages.sort();

    let mut list = String::new();
    let mut index: Vec<(&str, String, usize)> = Vec::new();
    let mut hints = String::new();
    for (at, (id, text)) in languages.iter().enumerate() {
        // The path is put together by the compiler, so no path of this machine is written down.
        let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/languages/{id}.toml\")");
        let _ = writeln!(list, "({id:?}, include_str!({path})),");
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{id}: {error}"));
        for kind in ["aliases", "extensions", "files", "shebangs"] {
            let names = table.get(kind).and_then(toml::Value::as_array);
            for name in names.into_iter().flatten().filter_map(toml::Value::as_str) {
                index.push((kind, name.to_owned(), at));
            }
        }
        for hint in table
            .get("hints")
            .and_then(toml::Value::as_array)
            .into_iter()
            .flatten()
        {
            let (rule, weight) = (hint[0].as_str(), hint[1].as_integer());
            let (Some(rule), Some(weight)) = (rule, weight) else {
                panic!("{id}: a hint is a pattern and a whole number");
            };
            let _ = writeln!(hints, "({at}, {rule:?}, {weight}),");
        }
    }
    index.sort();

    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name: &str, text: String| fs::write(Path::new(&out).join(name), text);
    write("languages.rs", format!("&[\n{list}]\n"))?;
    write(
        "names.rs",
        format!("&{index:?}\n").replace(".to_owned()", ""),
    )?;
    write("hints.rs", format!("&[\n{hints}]\n"))
}
