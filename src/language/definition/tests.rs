use super::way::word;
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
fn only_a_first_line_that_cannot_be_wrong_is_begun_early() {
    let text = include_str!("../../../languages/ruby.toml");
    let ruby = Definition::parse("ruby", text, Path::new("ruby.toml")).expect("it is right");
    let warm = ruby.warm.expect("it waits");
    for safe in [
        "# c\nputs(",
        "\nputs(",
        "require 'json'\n(",
        "puts \"a b\"\n(",
        "p 12",
        "def f\n  1",
        "class A\nend",
        "  # x",
    ] {
        assert_eq!(warm.first(safe), "\u{feff}", "{safe}");
    }
    for wrong in [
        "puts 1 +* 2",
        "def f",
        "def f\n",
        "class a\nend",
        "puts \"#{\"",
        "puts 08",
        "require 'a\"",
        "end = 1\np 1",
        "=begin\n=end",
        "puts 'a' (\n# c",
        "(\n# c",
    ] {
        assert_eq!(warm.first(wrong), "", "{wrong}");
    }
}

#[test]
fn a_definition_says_what_its_file_says() {
    let lua = parse(LUA).unwrap();

    assert_eq!(lua.id.as_str(), "lua");
    let needs = lua.commands().iter().map(|way| way.needs.concat());
    assert_eq!(needs.collect::<Vec<_>>(), ["lua5.4", "lua"]);
    assert_eq!(lua.source.file.as_str(), "main.lua");
    assert_eq!(
        lua.commands()[1].run,
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
        ("\"{file}\", ", "", "lua.toml:6: no command has `{file}`"),
        (
            "\"{runtime}\", ",
            "",
            "lua.toml:6: a command must start with `{runtime}`",
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
            "\"-f{runtime}\"",
            "lua.toml:6: `{runtime}` must be a whole element",
        ),
        (
            "\"-W\"",
            "\"{out}\"",
            "lua.toml:6: `{out}` needs a `compile` step",
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
            "lua.toml: `[runtime] commands` names no program",
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

const D: &str = r#"
name = "D"
source.file = "main.d"

[[command]]
needs = ["ldc2", "ld"]
compile = [["{runtime}", "-of={out}.o", "{file}", "{sources...}"], ["ld", "{out}.o", "-o", "{out}"]]
run = ["{out}", "{args...}"]

[[command]]
needs = ["rdmd"]
run = ["{runtime}", "{file}", "{args...}"]
"#;

#[test]
fn ways_are_kept_in_their_order_with_their_steps() {
    let d = Definition::parse("d", D, Path::new("d.toml")).unwrap();
    let [compiled, script] = d.commands() else {
        panic!("{d:?}")
    };
    assert_eq!(compiled.needs, ["ldc2", "ld"]);
    assert_eq!(compiled.compile.len(), 2);
    assert_eq!(
        compiled.compile[0][1],
        Word::Mixed(vec![
            Piece::Text("-of=".to_owned()),
            Piece::Out,
            Piece::Text(".o".to_owned())
        ])
    );
    assert_eq!(script.run, [Word::Runtime, Word::File, Word::Args]);
}

#[test]
fn an_engine_is_a_way_that_needs_no_program() {
    let text = |way: &str| format!("name = \"L\"\nsource.file = \"a.l\"\n[[command]]\n{way}\n");
    let read = |way: &str| Definition::parse("l", &text(way), Path::new("l.toml"));
    let way = read("embedded = \"lua\"").unwrap().commands()[0].clone();
    assert_eq!((way.embedded.as_deref(), way.needs.len()), (Some("lua"), 0));
    for (mistake, complaint) in [
        (
            "embedded = \"basic\"",
            "no engine `basic` is built in; there are jaq, lua",
        ),
        (
            "embedded = \"lua\"\nrun = [\"{runtime}\", \"{file}\"]",
            "all engines are started the same way",
        ),
        (
            "run = [\"{runtime}\", \"{file}\"]",
            "a command has neither `needs` nor `embedded`",
        ),
    ] {
        let error = read(mistake).unwrap_err();
        assert!(error.message.contains(complaint), "{mistake}: {error}");
    }
}

#[test]
fn a_request_chooses_among_the_ways_by_name() {
    let text = "name = \"L\"\nsource.file = \"a.l\"\n[[command]]\nneeds = [\"l\"]\n\
                run = [\"{runtime}\", \"{file}\"]\n[[command]]\nembedded = \"lua\"\n";
    let all = Definition::parse("l", text, Path::new("l.toml")).unwrap();
    assert_eq!(all.run_by("l").unwrap().commands(), &all.commands()[..1]);
    assert_eq!(
        all.run_by("embedded").unwrap().commands(),
        &all.commands()[1..]
    );
    let error = all.run_by("m").unwrap_err();
    assert_eq!(error.to_string(), "`l` cannot be run by `m`");
    assert_eq!(error.hint().unwrap(), "Choose one of: l, embedded.".into());
}

#[test]
fn a_way_that_cannot_work_is_refused() {
    for (right, mistake, complaint) in [
        ("[\"ld\",", "[\"cc\",", "a command starts with `{runtime}`"),
        (
            "\"{file}\", \"{sources...}\"",
            "\"{args...}\"",
            "must not contain `{args...}`",
        ),
        (
            "needs = [\"rdmd\"]",
            "needs = []",
            "`needs` names no program",
        ),
        (
            "source.file",
            "runtime.commands = [\"x\"]\nsource.file",
            "use either `[[command]]`",
        ),
    ] {
        let text = D.replacen(right, mistake, 1);
        let error = Definition::parse("d", &text, Path::new("d.toml")).unwrap_err();
        assert!(error.message.contains(complaint), "{mistake}: {error}");
    }
}

#[test]
fn only_folders_of_a_tool_chain_can_be_shown() {
    let show = |path: &str| {
        let text = D.replacen(
            "source.file",
            &format!("runtime.shows = [{path:?}]\nsource.file"),
            1,
        );
        Definition::parse("d", &text, Path::new("d.toml"))
    };
    for good in ["/etc/java-*", "/etc/mono", "/var/lib/ghc"] {
        assert!(show(good).is_ok(), "{good}");
    }
    for bad in [
        "/etc",
        "/etc/",
        "/etc/*",
        "/etc/s*",
        "/",
        "/home/ann",
        "/etc/../home",
        "/var/lib/",
        "etc/mono",
        "/etc/x/../../y",
        "/etc/a*b*",
    ] {
        assert!(show(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_compilers_words_become_places() {
    let text = format!(
        "{D}\n[compile]\ndiagnostics = [\"{{path}}:{{line}}:{{column}}: error:{{message}}\", \"{{any}}--> {{path}}:{{line}}:{{column}}\"]\n"
    );
    let mut compile = Definition::parse("d", &text, Path::new("d.toml"))
        .unwrap()
        .compile;
    let problem = |line, column, message: &str| Problem {
        file: "main.d".to_owned(),
        line,
        column: Some(column),
        message: message.to_owned(),
    };
    let said = "note: x\n/workspace/main.d:3:7: error: no such thing\n./main.d:9:1: error:\n    next line\n";
    let expected = [problem(3, 7, "no such thing"), problem(9, 1, "next line")];
    assert_eq!(compile.problems(said), expected);
    compile.message_before = true;
    let said = "error[E1]: wrong\n --> main.d:2:5\n  |\n";
    assert_eq!(compile.problems(said), [problem(2, 5, "error[E1]: wrong")]);
    assert!(compile.problems(&"main.d:1:1: error: x\n".repeat(99)).len() == 1);
}

#[test]
fn braces_that_hold_no_placeholder_are_text() {
    assert_eq!(
        word("{ print $1 }".to_owned()),
        Ok(Word::Literal("{ print $1 }".to_owned()))
    );
    assert_eq!(word("{}".to_owned()), Ok(Word::Literal("{}".to_owned())));
    assert!(word("{{colour}".to_owned()).is_err());
}
