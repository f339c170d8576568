use super::*;

const LUA: &str = r#"
name = "Lua"
extensions = ["lua"]
runtime.commands = ["lua5.4", "lua"]
source.file = "main.lua"
run.argv = ["{runtime}", "-W", "{file}", "{args...}"]
env.LUA_INIT = ""
failure.memory = ["lua: not enough memory"]
"#;

fn parse(text: &str) -> Result<Definition, String> {
    Definition::parse("lua", text, Path::new("lua.toml")).map_err(|error| error.to_string())
}

#[test]
fn a_definition_says_what_its_file_says() {
    let lua = parse(LUA).unwrap();

    assert_eq!(lua.id.as_str(), "lua");
    assert_eq!(lua.runtime.commands, ["lua5.4", "lua"]);
    assert_eq!(lua.source.file.as_str(), "main.lua");
    assert_eq!(
        lua.run.argv,
        [
            Word::Runtime,
            Word::Literal("-W".to_owned()),
            Word::File,
            Word::Args
        ]
    );
    assert_eq!(
        lua.env,
        BTreeMap::from([("LUA_INIT".to_owned(), String::new())])
    );
}

#[test]
fn each_mistake_is_named_with_its_line() {
    let wrong = [
        (
            "name = \"Lua\"",
            "name = \"Lua\"\ncolour = 1",
            "lua.toml:3: unknown field `colour`",
        ),
        (
            "\"{file}\", ",
            "",
            "lua.toml:6: a command has `{file}` exactly once",
        ),
        (
            "\"{runtime}\", ",
            "",
            "lua.toml:6: a command starts with `{runtime}`",
        ),
        (
            "\"-W\"",
            "\"{args...}\"",
            "lua.toml:6: a command has `{args...}` at most once",
        ),
        (
            "\"-W\"",
            "\"{flags}\"",
            "lua.toml:6: unknown placeholder `{flags}`",
        ),
        (
            "\"-W\"",
            "\"-f{file}\"",
            "lua.toml:6: `{file}` must be a whole element",
        ),
        ("main.lua", "../main.lua", "lua.toml:5: "),
        ("LUA_INIT", "\"A=B\"", "lua.toml:7: "),
        (
            "\"lua5.4\", ",
            "\"/bin/lua\", ",
            "lua.toml:4: \"/bin/lua\" is not the plain name",
        ),
        (
            "[\"lua5.4\", \"lua\"]",
            "[]",
            "lua.toml:4: `commands` names no program",
        ),
        (
            "[\"lua\"]",
            "[\".lua\"]",
            "lua.toml:3: \".lua\" is not an extension",
        ),
        (
            "\"lua: not enough memory\"",
            "\"\"",
            "lua.toml:8: \"\" is not the start",
        ),
        (
            "\"lua: not enough memory\"",
            "\"{module}{line}\"",
            "lua.toml:8: two placeholders side by side",
        ),
        (
            "\"lua: not enough memory\"",
            "\"lua: {colour}\"",
            "lua.toml:8: unknown placeholder `{colour}`",
        ),
        ("name = \"Lua\"", "name = Lua", "lua.toml:2: "),
    ];
    for (right, mistake, complaint) in wrong {
        let error = parse(&LUA.replacen(right, mistake, 1)).unwrap_err();
        assert!(error.starts_with(complaint), "{mistake}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn braces_that_hold_no_placeholder_are_text() {
    assert_eq!(
        word("{ print $1 }".to_owned()),
        Ok(Word::Literal("{ print $1 }".to_owned()))
    );
    assert_eq!(word("{}".to_owned()), Ok(Word::Literal("{}".to_owned())));
    assert!(word("{{out}".to_owned()).is_err());
}
