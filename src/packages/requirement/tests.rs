use super::*;

fn pypi(text: &str) -> Option<String> {
    let parsed = Requirement::parse(text, Ecosystem::Pypi);
    parsed.ok().map(|it| it.to_string())
}

fn npm(text: &str) -> Option<String> {
    let parsed = Requirement::parse(text, Ecosystem::Npm);
    parsed.ok().map(|it| it.to_string())
}

#[test]
fn what_people_write_for_pypi_is_understood() {
    for (text, written) in [
        ("requests", "requests"),
        (" requests ", "requests"),
        ("requests>=2,<3", "requests>=2,<3"),
        ("requests >= 2, < 3", "requests>=2,<3"),
        ("requests (>=2)", "requests>=2"),
        (
            "requests[socks,security]==2.31.*",
            "requests[socks,security]==2.31.*",
        ),
        ("ruamel.yaml~=0.18", "ruamel.yaml~=0.18"),
        ("torch==2.1.0+cpu", "torch==2.1.0+cpu"),
        (
            "tomli; python_version < '3.11'",
            "tomli; python_version < '3.11'",
        ),
        (
            "x>=1; (sys_platform=='linux' and extra!=\"a b\") or os_name in 'posix'",
            "x>=1; ( sys_platform == 'linux' and extra != \"a b\" ) or os_name in 'posix'",
        ),
    ] {
        assert_eq!(pypi(text).as_deref(), Some(written), "{text}");
    }
    assert_eq!(normal("Ruamel__YAML.-x"), "ruamel-yaml-x");
}

#[test]
fn what_people_write_for_npm_is_understood() {
    for text in [
        "zod",
        "lodash-es@4.17.21",
        "@types/node@^20",
        "date-fns@>=2 <3",
        "a@1.x || 2.x",
        "JSONStream",
        "a@latest",
    ] {
        assert_eq!(npm(text).as_deref(), Some(text), "{text}");
    }
    let zod = Requirement::parse("@a/b@~1.2", Ecosystem::Npm).unwrap();
    assert_eq!((zod.name(), zod.versions()), ("@a/b", "~1.2"));
}

#[test]
fn nothing_that_an_installer_could_take_for_more_than_a_package_is_one() {
    let long = "a".repeat(10_000);
    for text in [
        "",
        "--index-url=http://127.0.0.1:47999",
        "-r/etc/passwd",
        "-e .",
        "git+https://x",
        "git+ssh://x",
        "file:///etc",
        "../x",
        "./x",
        "http://127.0.0.1:47999/x.whl",
        "x @ http://127.0.0.1:47999/x.whl",
        "--config-settings=a",
        "x;id",
        "$(id)",
        "x\ny",
        "x[--y]",
        "npm:evil@1",
        "github:u/r",
        "@scope/../../x",
        "link:/etc",
        "requests==2.*; python_version>\"0\" --hash=x",
        "x==1 --hash=sha256:00",
        "x\\\ny",
        "x #y",
        "x==1\r\n--index-url=y",
        "x\0",
        "x ==",
        "x==-1",
        "x==--y",
        "é",
        "x; os_name",
        "x; a == 'b'",
        "x[a",
        ".x",
        "x.",
        "x==1 y",
        "x y",
        "x=1",
        "x; os_name == 'a\"; y",
        &long,
    ] {
        assert_eq!(pypi(text), None, "{text}");
        // npm's own forms are its own, and the rest is nothing there either.
        assert_eq!(npm(text).filter(|it| it != "x."), None, "{text}");
    }
    for text in [
        "a@npm:b@1",
        "a@file:b",
        "a@git+https://x",
        "a@http://x",
        "a/b",
        "@a",
        "@a/b/c",
        "a@../b",
        "a@1 --x",
        "a@-x",
        "a@b",
    ] {
        assert_eq!(npm(text), None, "{text}");
    }
}

#[test]
fn what_people_write_for_go_is_understood_and_nothing_else() {
    for text in [
        "github.com/google/uuid",
        "github.com/google/uuid@v1.6.0",
        "github.com/BurntSushi/toml@latest",
        "gopkg.in/yaml.v3@<v3.1",
        "golang.org/x/exp@v0.0.0-20240101000000-0123456789ab",
        "example.com",
    ] {
        let parsed = Requirement::parse(text, Ecosystem::Go).expect(text);
        assert_eq!(parsed.to_string(), text);
    }
    for text in [
        "uuid",
        "fmt",
        "./x.y",
        "../x",
        "a.b//c",
        "a.b/../c",
        "a.b/c/",
        "/a.b/c",
        "-a.b/c",
        "a.b/-c",
        "https://a.b/c",
        "a.b/c@",
        "a.b/c@../x",
        "a.b/c@-x",
        "a.b/c@v1 x",
        "a.b/c d",
        "a.b/c@<<<v1",
        "a.b/c@v1@v2",
    ] {
        assert!(Requirement::parse(text, Ecosystem::Go).is_err(), "{text}");
    }
}

#[test]
fn what_people_write_for_cargo_is_understood_and_nothing_else() {
    let parse = |text| Requirement::parse(text, Ecosystem::Crates);
    for text in [
        "rand",
        "rand@0.8",
        "serde[derive]@^1",
        "tokio[rt,macros]@>=1.2, <2",
        "serde_json@=1.0.0-rc.1+x",
    ] {
        assert_eq!(parse(text).expect(text).to_string(), text);
    }
    let tokio = parse("tokio[rt,macros]@1").expect("a crate");
    assert_eq!(
        (tokio.versions(), tokio.extras().collect::<Vec<_>>()),
        ("1", vec!["rt", "macros"])
    );
    for text in [
        "",
        "1a",
        "a b",
        "a.b",
        "a/b",
        "-a",
        "a@",
        "a@x",
        "a@1\"",
        "a@git+https://x",
        "a@../b",
        "a[",
        "a[]",
        "a[b]c",
        "a[\"b]",
        "a = '1'",
        "a@1]",
        "a\nb",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
