//! Makes the registry's tables of `languages/*.toml`, so that a new language needs no
//! Rust and a run reads one definition and not a hundred; and builds the library that
//! a zygote's runtime is started with.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    say_version();
    list_languages(&out)?;
    build_library(&out)?;
    build_command(&out)
}

/// What `--version` says: with the commit and its date, in what is handed out. A development build says that it is one: it would be
/// compiled anew after every commit, or tell an old one.
fn say_version() {
    println!("cargo::rerun-if-changed=commit.txt");
    println!("cargo::rerun-if-env-changed=HOTCELL_COMMIT");
    let number = env::var("CARGO_PKG_VERSION").expect("cargo says which it is");
    let is_debug = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let about = match is_debug {
        true => Some("development build".to_owned()),
        false => commit(),
    };
    let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
    println!("cargo::rustc-env=HOTCELL_VERSION={number}{about}");
}

/// The commit and its day: from the variable, from a file that `git archive` fills in, or from git. No clock is asked, so that a
/// build can be repeated.
fn commit() -> Option<String> {
    let given = env::var("HOTCELL_COMMIT").ok();
    let archived = || {
        let text = fs::read_to_string("commit.txt").ok()?;
        (!text.starts_with('$')).then(|| text.trim().to_owned())
    };
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let asked = || {
        // It grows with every commit, in worktrees too.
        let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
        println!("cargo::rerun-if-changed={log}");
        git(&["log", "-1", "--format=%H %cs"])
    };
    let found = given.or_else(archived).or_else(asked)?;
    let (commit, day) = found.split_once(' ')?;
    Some(format!("{} {day}", commit.get(..12)?))
}

/// The crate `command` as a static program: it is placed in sandboxes, which may have nothing but /usr.
fn build_command(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=crates/command");
    let folder = out.join("command");
    let target = env::var("TARGET").expect("cargo names the target");
    // Without dependencies it takes no cargo, and the linker leaves out what it does not need.
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo says which it is"));
    fs::create_dir_all(&folder)?;
    rustc
        .args([
            "crates/command/src/main.rs",
            "--crate-name=mcp",
            "--edition=2024",
        ])
        .args([
            "--target",
            &target,
            "-Copt-level=s",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "-Clto=fat",
        ])
        .args([
            "-Ctarget-feature=+crt-static",
            "-Crelocation-model=static",
            "--out-dir",
        ])
        .arg(&folder)
        .args(remapped());
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = OsString::from("-Clinker=");
        flag.push(linker);
        rustc.arg(flag);
    }
    match rustc.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("the command `mcp` does not build")),
    }
}

/// The flags of this build that keep paths of the machine out of it.
fn remapped() -> Vec<String> {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags = flags.split('\u{1f}').map(str::to_owned);
    flags
        .filter(|flag| flag.starts_with("--remap-path-prefix="))
        .collect()
}

/// The crate `zygote` as a shared library, for cargo cannot depend on a crate in that
/// form. It belongs into a dynamic program, unlike ours.
fn build_library(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=crates/jail");
    println!("cargo::rerun-if-changed=crates/zygote");
    let folder = out.join("zygote");
    let target = env::var("TARGET").expect("cargo names the target");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo says which it is"));
    cargo
        .args(["rustc", "--quiet", "--package=zygote", "--lib", "--release"])
        .args(["--crate-type=cdylib", "--locked"])
        .args(["--target", &target])
        .arg("--target-dir")
        .arg(&folder)
        .env_remove("RUSTFLAGS");
    for ours in ["RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER"] {
        cargo.env_remove(ours);
    }
    let mut flags = vec!["-Ctarget-feature=-crt-static".to_owned()];
    flags.extend(remapped());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    if !cargo.status()?.success() {
        return Err(io::Error::other(
            "the library of the zygotes does not build",
        ));
    }
    let library = folder.join(target).join("release/libzygote.so");
    let needed = least_glibc(&fs::read(&library)?);
    println!("cargo::rustc-env=HOTCELL_LIBRARY_GLIBC={needed}");
    fs::copy(library, out.join("zygote.so")).map(drop)
}

/// The newest minor version of glibc that a library names: with an older one it is not loaded.
fn least_glibc(library: &[u8]) -> u32 {
    const NAME: &[u8] = b"GLIBC_2.";
    let named = library.windows(NAME.len() + 3).filter_map(|text| {
        let number = text.strip_prefix(NAME)?;
        let digits = number.iter().take_while(|it| it.is_ascii_digit());
        let number: String = digits.map(|it| char::from(*it)).collect();
        number.parse().ok()
    });
    named.max().unwrap_or(u32::MAX)
}

fn list_languages(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=languages");
    println!("cargo::rerun-if-changed=recipes");
    recipes()?;
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

    let write = |name: &str, text: String| fs::write(out.join(name), text);
    write("languages.rs", format!("&[\n{list}]\n"))?;
    write(
        "names.rs",
        format!("&{index:?}\n").replace(".to_owned()", ""),
    )?;
    write("hints.rs", format!("&[\n{hints}]\n"))
}

/// Lists `recipes/*.toml`.
fn recipes() -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir("recipes")? {
        let name = entry?.file_name().into_string();
        let name = name.expect("a recipe's file name is UTF-8");
        names.extend(name.strip_suffix(".toml").map(str::to_owned));
    }
    names.sort();
    let line = |name: &String| {
        let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/recipes/{name}.toml\")");
        format!("({name:?}, include_str!({path})),\n")
    };
    let list: String = names.iter().map(line).collect();
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("recipes.rs"), format!("&[\n{list}]\n"))
}
