//! Rust's crates: by what a program names, vendored in one cell and built in another.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::OLD;
use super::registry::{Registry, tarball, today};
use crate::support::{Hotcell, PATH, Running, everyone, has, skip};

/// Somebody who can read the tool chain that these tests are built with, and where it is.
fn anyone() -> Option<(Hotcell, PathBuf)> {
    let said = Command::new("rustc").args(["--print", "sysroot"]).output();
    let said = said.ok().and_then(|it| String::from_utf8(it.stdout).ok());
    let bin = Path::new(said?.trim()).join("bin");
    let can = |hotcell: &Hotcell| {
        let mut command = Command::new(bin.join("cargo"));
        hotcell.dress(&mut command);
        let output = command.arg("--version").output();
        output.is_ok_and(|it| it.status.success())
    };
    let found = everyone().into_iter().find(can);
    if found.is_none() {
        skip("no cargo that the tests can use");
    }
    has("cc").then_some((found?, bin))
}

struct Rust {
    hotcell: Hotcell,
    bin: PathBuf,
    registry: Registry,
}

impl Rust {
    fn start() -> Option<Self> {
        let (hotcell, bin) = anyone()?;
        let registry = Registry::start();
        for version in ["1.0.0", "1.1.0"] {
            let code = format!("pub const VERSION: &str = \"{version}\";\n");
            registry.add_crate(
                "tinything",
                version,
                OLD,
                &package("tinything", version, &code, ""),
                "",
            );
        }
        Some(Self {
            hotcell,
            bin,
            registry,
        })
    }

    fn command(&self) -> Command {
        let mut command = super::command(&self.hotcell, &self.registry, None);
        command.env("PATH", format!("{}:{PATH}", self.bin.display()));
        command
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let mut command = self.command();
        let command = command
            .args(["run", "--json", "-l", "rust"])
            .args(arguments);
        Running::start(command).finish().json()
    }
}

fn package(name: &str, version: &str, code: &str, more: &str) -> Vec<u8> {
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n{more}"
    );
    let inside = |file: &str| format!("{name}-{version}/{file}");
    tarball(&[
        (&inside("Cargo.toml"), manifest),
        (&inside("src/lib.rs"), code.to_owned()),
        (&inside("build.rs"), BUILD.to_owned()),
    ])
}

/// Tries what a build script must not be able to do, and tells the crate.
const BUILD: &str = r#"fn main() {
    let shut = std::net::TcpStream::connect("127.0.0.1:8377").is_err();
    let kept = std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/x"), "").is_err();
    println!("cargo:rustc-env=SAID={shut} {kept}");
}
"#;

const PROGRAM: &str = "use tinything::VERSION;\n\nfn main() { println!(\"{VERSION}\"); }\n";

#[test]
fn what_a_rust_program_uses_is_had_once_and_then_nobody_is_asked() {
    let Some(rust) = Rust::start() else {
        return;
    };
    let plain = rust.run(&["-c", "use std::fmt;\nfn main() { println!(\"1\") }"]);
    assert_eq!(
        (
            &plain["stdout"],
            plain.get("packages"),
            rust.registry.asked()
        ),
        (&"1\n".into(), None, 0),
        "{plain}"
    );
    let first = rust.run(&["-c", PROGRAM]);
    assert_eq!(first["stdout"], "1.1.0\n", "{first}");
    assert_eq!(first["packages"]["installed"], json!(["tinything==1.1.0"]));
    let asked = rust.registry.asked();
    let again = rust.run(&["--offline", "-c", PROGRAM]);
    assert_eq!(
        (
            &again["stdout"],
            &again["packages"]["cached"],
            &again["compile"]["cached"]
        ),
        (&first["stdout"], &true.into(), &true.into()),
        "{again}"
    );
    // Our own module is there beside them.
    let both =
        "use tinything::VERSION;\nfn main() { println!(\"{VERSION} {:?}\", hotcell::args()); }\n";
    let both = rust.run(&["-c", both, "x"]);
    assert_eq!(both["stdout"], "1.1.0 [\"x\"]\n", "{both}");
    let other = rust.run(&["-c", &PROGRAM.replace("{VERSION}", "2 {VERSION}")]);
    assert_eq!(other["stdout"], "2 1.1.0\n", "{other}");
    assert_eq!(
        rust.registry.asked(),
        asked,
        "a later run asked the registry"
    );
}

#[test]
fn a_version_a_manifest_and_a_lock_are_heeded() {
    let Some(rust) = Rust::start() else {
        return;
    };
    let run = |arguments: &[&str]| rust.run(&[arguments, &["-c", PROGRAM]].concat());
    let named = run(&["--package", "tinything@=1.0.0"]);
    assert_eq!(named["stdout"], "1.0.0\n", "{named}");
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\ntinything = \"<1.1\"\n";
    let manifest = rust.hotcell.write("Cargo.toml", manifest);
    let listed = run(&["--file", manifest.to_str().expect("a path")]);
    assert_eq!(listed["stdout"], "1.0.0\n", "{listed}");

    let lock = named["packages"]["lock"].as_str().expect("a lock");
    let remove = || {
        let mut command = rust.command();
        Running::start(command.args(["packages", "remove", "tinything"])).finish()
    };
    remove();
    let file = rust.hotcell.write("lock", lock);
    let file = file.to_str().expect("a path");
    let pinned = run(&["--lock", file]);
    assert_eq!(
        (&pinned["stdout"], &pinned["packages"]["lock"]),
        (&"1.0.0\n".into(), &lock.into()),
        "{pinned}"
    );
    // Somebody who changes a crate on the way is noticed, whatever the index says then.
    remove();
    let evil = package(
        "tinything",
        "1.0.0",
        "pub const VERSION: &str = \"evil\";",
        "",
    );
    rust.registry.add_page("/crates/ti/ny/tinything", "");
    rust.registry
        .add_crate("tinything", "1.0.0", OLD, &evil, "");
    let changed = run(&["--lock", file]);
    assert_eq!(changed["error"]["kind"], "package_not_found", "{changed}");
    let control = run(&[]);
    assert_eq!(control["stdout"], "evil\n", "{control}");
}

#[test]
fn a_crate_that_is_nobodys_or_brand_new_is_not_had_unless_it_is_named() {
    let Some(rust) = Rust::start() else {
        return;
    };
    let fresh = package("freshthing", "1.0.0", "pub const VERSION: u8 = 1;", "");
    rust.registry
        .add_crate("freshthing", "1.0.0", &today(), &fresh, "");
    for (name, why) in [("freshthing", "days old"), ("no_such_crate", "no package")] {
        let program = PROGRAM.replace("tinything", name);
        let output = rust.run(&["-c", &program]);
        assert_eq!(
            (&output["error"]["kind"], &output["error"]["module"]),
            (&"missing_module".into(), &name.into()),
            "{output}"
        );
        let hint = output["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains(why), "{hint}");
    }
    let program = PROGRAM.replace("tinything", "freshthing");
    let named = rust.run(&["--package", "freshthing", "-c", &program]);
    assert_eq!(named["stdout"], "1\n", "{named}");
    for bad in [
        "../x", "a b", "a@../x", "a[b", "a[b]c", "-a", "a@git+x", "a\"", "a@1\"",
    ] {
        let refused = rust.run(&[&format!("--package={bad}"), "-c", PROGRAM]);
        assert_eq!(
            refused["error"]["kind"], "invalid_request",
            "{bad}: {refused}"
        );
    }
}

#[test]
fn the_build_script_of_a_crate_runs_without_network_and_changes_nothing() {
    let Some(rust) = Rust::start() else {
        return;
    };
    let code = "pub const SAID: &str = env!(\"SAID\");";
    rust.registry.add_crate(
        "sbxevil",
        "1.0.0",
        OLD,
        &package("sbxevil", "1.0.0", code, ""),
        "",
    );
    let program = "fn main() { println!(\"{}\", sbxevil::SAID); }";
    let output = rust.run(&["--package", "sbxevil", "-c", program]);
    // That it says anything is the control: it ran.
    assert_eq!(output["stdout"], "true true\n", "{output}");
}

#[test]
fn crates_of_the_real_index_are_built() {
    let Some((hotcell, bin)) = anyone() else {
        return;
    };
    let code = "use serde::Serialize;\n\n#[derive(Serialize)]\nstruct Point { x: u8 }\n\n\
        fn main() { println!(\"{}\", serde_json::to_string(&Point { x: 1 }).unwrap()); }\n";
    let mut command = hotcell.command();
    let output = command
        .env("PATH", format!("{}:{PATH}", bin.display()))
        .args(["run", "-l", "rust", "-c", code])
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "{\"x\":1}\n",
        "{said}"
    );
}

/// Arguments, a value on a line, values by name, a tool: as `docs/running.md` has them.
const WITH_MODULE: &str = r##"use hotcell::{args, display};

fn main() {
    display(&args()[0]);
    hotcell::set("kept", r#"["x"]"#).unwrap();
    println!("{:?} {}", hotcell::get("kept"), hotcell::set("../x", "1").is_err());
    println!("{}", hotcell::call("nobody.tool", "{}").unwrap_err());
}
"##;

#[test]
fn an_import_of_hotcell_is_ours_in_rust() {
    let Some(rust) = Rust::start() else {
        return;
    };
    let stranger = package("hotcell", "1.0.0", "pub fn args() -> u8 { 9 }\n", "");
    rust.registry
        .add_crate("hotcell", "1.0.0", OLD, &stranger, "");
    let result = rust.run(&["-c", WITH_MODULE, "a"]);
    let expected =
        "a\nSome(\"[\\\"x\\\"]\") true\nthis run was given no servers: see `hotcell servers`\n";
    assert_eq!(result["stdout"], expected, "{result}");
    assert_eq!((result.get("packages"), rust.registry.asked()), (None, 0));
    // A program that has one of its own keeps it.
    let own = "mod hotcell { pub fn name() -> &'static str { \"own\" } }\nuse hotcell::name;\nfn main() { println!(\"{}\", name()) }\n";
    let own = rust.run(&["-c", own]);
    assert_eq!(own["stdout"], "own\n", "{own}");
}
