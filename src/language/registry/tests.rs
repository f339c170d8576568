use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;

const LUA: &str = r#"
name = "Lua"
aliases = ['lua54']
extensions = ["lua"]
shebangs = ["lua"]
runtime.commands = ["lua"]
source.file = "main.lua"
run.argv = ["{runtime}", "{file}"]
"#;

/// A configuration folder with these files in `languages/`.
fn config(files: &[(&str, &str)]) -> TempDir {
    let config = TempDir::new().unwrap();
    fs::create_dir(config.path().join("languages")).unwrap();
    for (name, text) in files {
        fs::write(config.path().join("languages").join(name), text).unwrap();
    }
    config
}

fn choose<'a>(
    registry: &'a Registry,
    asked: Option<&str>,
    file: Option<&str>,
    code: &[u8],
) -> Result<&'a Definition, LanguageError> {
    let chosen = registry.recognize(asked, None, file, code, |_| true);
    chosen.map(|chosen| chosen.definition)
}

fn id(found: Result<&Definition, LanguageError>) -> String {
    found
        .map(|definition| definition.id.to_string())
        .unwrap_or_else(|error| error.to_string())
}

#[test]
fn every_built_in_definition_is_right_and_is_found_by_all_its_names() {
    let registry = Registry::load(None);
    let mut owners: BTreeMap<(&str, String), &LanguageId> = BTreeMap::new();
    for listed in registry.list() {
        let definition = listed.definition.unwrap();
        assert_eq!(definition.check_patterns(), Ok(()), "{}", definition.id);
        let names = definition
            .aliases
            .iter()
            .chain([&definition.id])
            .map(|name| ("name", name.to_string()));
        let extensions = definition
            .extensions
            .iter()
            .map(|extension| ("extension", extension.clone()));
        let files = definition.files.iter().map(|name| ("file", name.clone()));
        let shebangs = definition
            .shebangs
            .iter()
            .map(|name| ("shebang", name.clone()));
        for key in names.chain(extensions).chain(files).chain(shebangs) {
            let found = match key.0 {
                "name" => registry.find(&key.1).unwrap(),
                "file" => registry.by_file_name(&key.1).unwrap().unwrap(),
                "extension" => registry.by_extension(&key.1).unwrap().unwrap(),
                _ => registry
                    .by_shebang(format!("#!/usr/bin/{}", key.1).as_bytes())
                    .unwrap()
                    .unwrap(),
            };
            assert_eq!(found.id, definition.id, "{key:?}");
            if let Some(other) = owners.insert(key.clone(), &definition.id) {
                panic!("{key:?} is claimed by both {other} and {}", definition.id);
            }
        }
    }
    assert!(owners.len() >= 95);
}

#[test]
fn a_slip_of_the_hand_names_the_language_that_was_meant() {
    let registry = Registry::load(None);
    for (asked, best) in [
        ("pyhton", "python"),
        ("pythn", "python"),
        ("javscript", "javascript"),
        ("pyth", "python"),
    ] {
        let Err(LanguageError::Unknown { similar, .. }) = registry.find(asked) else {
            panic!("{asked}")
        };
        assert_eq!(
            similar.first().map(LanguageId::as_str),
            Some(best),
            "{asked}"
        );
    }
    let error = registry.find("pyhton").unwrap_err();
    assert_eq!(error.to_string(), "unknown language `pyhton`");
    assert_eq!(error.hint().unwrap(), "Did you mean `python`?".into());

    let error = registry.find(&"q\n".repeat(100)).unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    assert_eq!(error.hint().unwrap(), Hint::ListLanguages);
}

#[test]
fn names_are_found_in_any_case_of_letters() {
    let registry = Registry::load(None);
    assert_eq!(id(registry.find(" Python3 ")), "python");
    assert_eq!(
        registry.by_extension("PY").unwrap().unwrap().id.as_str(),
        "python"
    );
}

#[test]
fn a_program_is_known_by_what_was_asked_then_its_first_line_then_its_name() {
    let registry = Registry::load(None);
    let choose = |asked, file, code: &str| id(choose(&registry, asked, file, code.as_bytes()));

    assert_eq!(choose(Some("js"), Some("a.py"), "#!/bin/sh"), "javascript");
    assert_eq!(choose(None, Some("a.py"), "#!/bin/sh"), "shellscript");
    assert_eq!(choose(None, Some("a.py"), "#!/usr/bin/unknown"), "python");
    assert_eq!(choose(None, Some("a.tar.py"), "x"), "python");
    assert_eq!(
        choose(None, Some("a.b\nc"), "x"),
        "cannot tell the language of `a.b\\nc`"
    );
    assert_eq!(
        choose(None, None, "x = 1"),
        "cannot tell the language of this code: it may be ruby, julia, python or javascript"
    );
}

#[test]
fn a_first_line_is_read_as_the_kernel_and_env_would() {
    let python = [
        "/usr/bin/python3",
        "/usr/bin/env python3.11 -u",
        " /usr/bin/env -S A=b /opt/x/python3 -u",
        "python",
    ];
    let registry = Registry::load(None);
    for line in python {
        let found = registry
            .by_shebang(format!("\u{feff}#!{line}\r\nx").as_bytes())
            .unwrap();
        assert_eq!(found.unwrap().id.as_str(), "python", "{line}");
    }
    for line in [
        "",
        "/",
        "/usr/bin/env",
        "/usr/bin/env -S",
        "/usr/bin/3.11",
        "\u{1}",
    ] {
        assert!(
            registry
                .by_shebang(format!("#!{line}").as_bytes())
                .unwrap()
                .is_none(),
            "{line}"
        );
    }
    assert!(registry.by_shebang(b"#!\xff\xfe").unwrap().is_none());
    assert!(registry.by_shebang(b"print(1) #!python").unwrap().is_none());
}

#[test]
fn a_users_file_adds_a_language_or_takes_one_over() {
    let python = LUA
        .replace("Lua", "My Python")
        .replace("\"lua\"]\nruntime", "\"python\"]\nruntime");
    let config = config(&[
        ("lua.toml", LUA),
        ("python.toml", &python),
        ("notes.txt", "x"),
    ]);
    let registry = Registry::load(Some(config.path()));

    assert_eq!(id(registry.find("lua54")), "lua");
    assert_eq!(registry.find("python").unwrap().name, "My Python");
    let ids: Vec<_> = registry
        .list()
        .iter()
        .map(|listed| listed.id.to_owned())
        .collect();
    assert_eq!(ids.iter().filter(|id| *id == "python").count(), 1);
    assert!(ids.is_sorted());
}

#[test]
fn a_users_pattern_that_is_none_is_an_error_of_its_file() {
    let config = config(&[("lua.toml", &format!("hints = [['(', 1]]\n{LUA}"))]);
    let registry = Registry::load(Some(config.path()));
    let error = registry.find("lua").unwrap_err().to_string();
    assert!(error.contains("\"(\" is not a pattern"), "{error}");
}

#[test]
fn a_broken_file_is_an_error_for_its_own_language_only() {
    let config = config(&[
        ("lua.toml", &format!("{LUA}\ncolour = 1")),
        ("Bad Name.toml", LUA),
    ]);
    let registry = Registry::load(Some(config.path()));

    assert_eq!(id(registry.find("python")), "python");
    assert_eq!(id(choose(&registry, None, Some("a.py"), b"")), "python");
    for error in [
        registry.find("lua").unwrap_err(),
        registry.find("lua54").unwrap_err(),
        choose(&registry, None, Some("a.lua"), b"").unwrap_err(),
    ] {
        assert!(matches!(error, LanguageError::Broken(_)), "{error}");
    }
    let error = registry.find("lua").unwrap_err().to_string();
    assert!(
        error.contains("languages/lua.toml:10: unknown field `colour`"),
        "{error}"
    );
    let broken = registry
        .list()
        .into_iter()
        .filter(|listed| listed.definition.is_err())
        .count();
    assert_eq!(broken, 2);
}
