//! The README's table of languages is what the registry says.

use hotcell::language::{Definition, Registry, Way};

const START: &str = "<!-- languages: written from the registry, checked by a test -->\n";
const END: &str = "<!-- end of languages -->\n";

/// With `HOTCELL_WRITE=1` the table is written instead.
#[test]
fn the_readmes_table_of_languages_is_the_registrys() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(file).expect("the README");
    let (before, rest) = readme.split_once(START).expect("the table's start");
    let (shown, after) = rest.split_once(END).expect("the table's end");
    let table = table();
    if std::env::var_os("HOTCELL_WRITE").is_some_and(|value| value == "1") {
        let text = format!("{before}{START}{table}{END}{after}");
        std::fs::write(file, text).expect("the README is written");
    } else {
        assert_eq!(shown, table, "write it with HOTCELL_WRITE=1");
    }
}

fn table() -> String {
    let registry = Registry::load(None);
    let listed = registry.list();
    let mut text = format!(
        "{} languages. hotcell uses the first program of a row that is installed; one that is built in always is.\n\n\
         | id | other names | files | programs | Debian package |\n|---|---|---|---|---|\n",
        listed.len()
    );
    for one in listed {
        let definition = one.definition.expect("the built-in definitions are right");
        text += &row(definition);
    }
    text
}

fn row(definition: &Definition) -> String {
    let aliases: Vec<String> = definition.aliases.iter().map(ToString::to_string).collect();
    let extensions = definition.extensions.iter().map(|it| format!(".{it}"));
    let files: Vec<String> = definition.files.iter().cloned().chain(extensions).collect();
    let mut programs: Vec<String> = Vec::new();
    // What is for some programs only is left out where others have the same programs.
    let ways = definition.commands();
    let is_plain = |way: &Way| {
        let same = |other: &Way| other.when.is_none() && other.needs == way.needs;
        way.when.is_none() || !ways.iter().any(same)
    };
    for way in ways.iter().filter(|way| is_plain(way)) {
        let own = way
            .embedded
            .iter()
            .map(|engine| format!("built in ({engine})"));
        let names: Vec<String> = own.chain(way.needs.iter().cloned()).collect();
        let names = names.join(" + ");
        if !programs.contains(&names) {
            programs.push(names);
        }
    }
    let package = match (definition.platform, &definition.runtime.install.apt) {
        (Some(platform), _) => format!("only on {}", platform.name()),
        (None, Some(apt)) => apt.clone(),
        (None, None) => "-".to_owned(),
    };
    format!(
        "| {} | {} | {} | {} | {package} |\n",
        definition.id,
        aliases.join(", "),
        files.join(" "),
        programs.join(", ")
    )
}
