use super::*;

fn plain(code: &str) -> Vec<String> {
    let found = imports(code).into_iter();
    let plain = found.filter(|it| it.need == Need::Plain);
    plain.map(|it| it.module).collect()
}

fn needs(code: &str) -> Vec<(String, Need)> {
    let found = imports(code).into_iter();
    found.map(|it| (it.module, it.need)).collect()
}

#[test]
fn every_form_of_the_statement_is_read() {
    for (code, expected) in [
        ("import a", vec!["a"]),
        ("import a.b.c as d, e", vec!["a.b.c", "e"]),
        ("from a.b import c", vec!["a.b"]),
        (
            "from a import (\n    b,  # one\n    c as d,\n)\nimport e",
            vec!["a", "e"],
        ),
        ("from a import *", vec!["a"]),
        ("import \\\n  a", vec!["a"]),
        ("x = 1; import a; from b import c", vec!["a", "b"]),
        ("if x: import a\nelse: import b", vec!["a", "b"]),
        ("def f():\n\timport a\n\treturn a", vec!["a"]),
        ("class A:\n  import a", vec!["a"]),
        ("with x as y, z: from a import b", vec!["a"]),
        ("import a\r\nimport b\r\n", vec!["a", "b"]),
        (
            "import importlib\nm = importlib.import_module('a.b')",
            vec!["importlib", "a.b"],
        ),
        ("__import__(\"a\")", vec!["a"]),
        ("import größe", vec!["größe"]),
    ] {
        assert_eq!(plain(code), expected, "{code}");
    }
}

#[test]
fn what_only_looks_like_an_import_is_none() {
    for code in [
        "# import a",
        "'import a'",
        "x = \"\"\"\nimport a\nfrom b import c\n\"\"\"",
        "x = r'''\nimport a\\'''",
        "x = f\"\"\"\nimport {a}\n\"\"\"",
        "x = '\\'; import a'",
        "raise A from b",
        "def f():\n    yield from a",
        "from . import a",
        "from .a import b",
        "from ..a import b",
        "important = 1",
        "f(\n'x',\nb\"import a\"\n)",
        "__import__(f'{a}')",
        "__import__(name)",
        "import",
        "from",
        "from a",
        "import 'a'",
    ] {
        assert_eq!(plain(code), Vec::<String>::new(), "{code}");
    }
}

#[test]
fn a_from_import_keeps_what_it_asks_for() {
    let [import] = imports("from google.cloud import storage as s, bigquery")
        .try_into()
        .unwrap();
    assert_eq!(import.module, "google.cloud");
    assert_eq!(
        import.also,
        ["google.cloud.storage", "google.cloud.bigquery"]
    );
    assert_eq!(import.top(), "google");
}

#[test]
fn what_only_a_type_checker_reads_is_left_out() {
    let code = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    import b\nimport c";
    assert_eq!(plain(code), ["typing", "b", "c"]);
    assert_eq!(
        plain("import typing\nif typing.TYPE_CHECKING: import a\nimport b"),
        ["typing", "b"]
    );
    assert_eq!(plain("if not TYPE_CHECKING:\n    import a"), ["a"]);
}

#[test]
fn what_a_program_can_do_without_is_told_apart() {
    let code = "try:\n    import ujson as json\nexcept ImportError:\n    import simplejson as json\nimport c";
    assert_eq!(
        needs(code),
        [
            ("ujson".to_owned(), Need::Optional(1)),
            ("simplejson".to_owned(), Need::Fallback(1)),
            ("c".to_owned(), Need::Plain),
        ]
    );
    // One that catches something else is no help against a missing module.
    let code = "try:\n    import a\n    a.b()\nexcept ValueError:\n    import c";
    assert_eq!(plain(code), ["a", "c"]);
    for catches in [
        "except:",
        "except Exception as e:",
        "except (A, ModuleNotFoundError):",
    ] {
        let code = format!("try: import a\n{catches} pass");
        assert_eq!(
            needs(&code),
            [("a".to_owned(), Need::Optional(1))],
            "{code}"
        );
    }
    let nested = "try:\n    try:\n        import a\n    finally:\n        import b\nexcept ImportError:\n    pass";
    let found = needs(nested);
    assert_eq!(found[0], ("a".to_owned(), Need::Optional(1)), "{found:?}");
    assert_eq!(found[1], ("b".to_owned(), Need::Optional(1)), "{found:?}");
}

#[test]
fn any_text_is_read_without_a_panic() {
    for code in [
        "import a\\",
        "'",
        "\"\"\"import",
        "import \u{1F600}",
        "from \\\n",
        "((((import a",
        "]]]import a",
        "import a\\\u{e9}",
        "f'\\",
        "\u{e9}'import a",
        "import\0a",
        "\\\u{1F600}import a",
    ] {
        let _ = imports(code);
    }
    assert_eq!(plain(")))\nimport a"), ["a"]);
}

#[test]
fn an_await_outside_of_every_function_is_noticed() {
    for code in [
        "await f()",
        "x = 1\nprint(await f())",
        "async with a as b:\n    pass",
        "if x:\n    await f()",
        "async def f():\n    pass\nawait f()",
    ] {
        assert!(awaits_at_top(code), "{code}");
    }
    for code in [
        "async def f():\n    await g()",
        "'await x'",
        "# await x",
        "async def f(): await g()",
        "def f():\n    async def g():\n        await h()\n    return g\nx = 1",
    ] {
        assert!(!awaits_at_top(code), "{code}");
    }
}
