use std::path::Path;

use super::super::{Config, ConfigError};
use super::*;

fn load(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("config.toml"), text).expect("a file");
    Config::load(Some(folder.path()))
}

/// The keys that a table takes, as its reader names them for one that it does not know.
fn taken(text: &str) -> Vec<String> {
    let error = match Config::parse(Path::new("config.toml"), text) {
        Err(mistake) => mistake.reason().to_owned(),
        // A mistake in a server is that server's, and told by it.
        Ok(_) => super::super::servers::unknown_key(),
    };
    let (_, listed) = error.split_once("expected ").expect(&error);
    let mut keys: Vec<String> = listed
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    keys.sort();
    keys
}

#[test]
fn the_table_has_every_key_that_is_read_and_no_other() {
    for group in GROUPS {
        let header = match group.table {
            "" => String::new(),
            "mount[]" => "[[mount]]\n".to_owned(),
            "secret[]" => "[[secret]]\n".to_owned(),
            "servers" => continue,
            table => format!("[{table}]\n"),
        };
        let mut known: Vec<String> = SETTINGS
            .iter()
            .filter(|it| it.table() == group.table)
            .map(|it| it.name().to_owned())
            .collect();
        if group.table.is_empty() {
            let tables = GROUPS
                .iter()
                .filter_map(|it| it.table.split(['.', '[']).next());
            known.extend(tables.filter(|it| !it.is_empty()).map(str::to_owned));
        }
        known.sort();
        known.dedup();
        assert_eq!(
            taken(&format!("{header}no_such_key = 1\n")),
            known,
            "{}",
            group.table
        );
    }
}

#[test]
fn the_example_and_the_file_to_begin_with_are_read_without_a_mistake() {
    let page = page();
    let (_, example) = page.rsplit_once("```toml\n").expect("an example");
    let example = example
        .trim_end_matches("```\n")
        .replace("/srv/data", "/usr");
    let loaded = load(&example);
    assert!(loaded.is_ok(), "{loaded:?}\n{example}");
    assert!(load(&template()).is_ok());
    // Every line of it, too, but for the tables that name something.
    let lines = template();
    let (plain, _) = lines.split_once("#[[mount]]").expect("a mount");
    let lines = plain.lines().filter_map(|line| line.strip_prefix('#'));
    let lines = lines
        .filter(|line| !line.starts_with(' '))
        .collect::<Vec<_>>();
    assert!(lines.len() > 5);
    assert!(load(&lines.join("\n")).is_ok(), "{}", lines.join("\n"));
}

#[test]
fn the_page_in_the_folder_of_documents_is_current() {
    assert_eq!(
        page(),
        include_str!("../../../docs/config.md"),
        "write it anew: hotcell help config > docs/config.md"
    );
}

#[test]
fn a_key_that_there_is_not_is_told_with_the_one_that_was_meant() {
    for (text, meant) in [
        ("[packages]\nsizes = '1g'\n", Some("packages.size")),
        ("[pakages]\nsize = '1g'\n", Some("packages")),
        ("autoinstall = true\n", Some("auto_install")),
        (
            "[limits]\nmax = { memmory = '1g' }\n",
            Some("limits.max.memory"),
        ),
        ("[[mount]]\nhots = '/srv'\n", Some("mount.host")),
        ("[records]\noffline = true\n", Some("packages.offline")),
        ("[limits]\nmemry = '1g'\n", Some("limits.default.memory")),
        ("zzzz = 1\n", None),
    ] {
        let told = load(text).expect_err(text).to_string();
        let wanted = meant.map(|it| format!("; did you mean `{it}`?"));
        match wanted {
            Some(wanted) => assert!(told.ends_with(&wanted), "{told}"),
            None => assert!(told.ends_with("there is no such key"), "{told}"),
        }
    }
}

#[test]
fn the_schema_has_a_place_for_every_key() {
    let schema = schema();
    assert_eq!(schema["properties"]["auto_install"]["type"], "boolean");
    let mount = &schema["properties"]["mount"]["items"];
    assert_eq!(mount["required"], serde_json::json!(["host", "cell"]));
    let server = &schema["properties"]["servers"]["additionalProperties"];
    assert_eq!(server["properties"]["args"]["type"], "array");
    assert_eq!(
        schema["properties"]["limits"]["properties"]["max"]["properties"]["cpus"]["default"],
        64
    );
}
