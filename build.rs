//! Lists `languages/*.toml` for the registry, so that a new language needs no Rust, and
//! builds the library that a zygote's runtime is started with.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    list_languages(&out)?;
    build_library(&out)
}

/// The jail once more, as a shared library with a feature of its own: cargo cannot
/// depend on a crate in two forms. It belongs into a dynamic program, unlike ours.
fn build_library(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=crates/jail");
    let folder = out.join("zygote");
    let target = env::var("TARGET").expect("cargo names the target");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo says which it is"));
    cargo
        .args(["rustc", "--quiet", "--package=jail", "--lib", "--release"])
        .args(["--features=zygote", "--crate-type=cdylib", "--locked"])
        .args(["--target", &target])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", "-C target-feature=-crt-static");
    for ours in [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
    ] {
        cargo.env_remove(ours);
    }
    if !cargo.status()?.success() {
        return Err(io::Error::other("the zygote's library does not build"));
    }
    let library = folder.join(target).join("release/libjail.so");
    fs::copy(library, out.join("zygote.so")).map(drop)
}

fn list_languages(out: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=languages");
    let mut names = Vec::new();
    for entry in fs::read_dir("languages")? {
        let name = entry?
            .file_name()
            .into_string()
            .expect("a language's file name is UTF-8");
        if let Some(id) = name.strip_suffix(".toml") {
            names.push(id.to_owned());
        }
    }
    names.sort();

    // The path is put together by the compiler, so no path of this machine is written down.
    let list: String = names
        .iter()
        .map(|id| format!("({id:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/languages/{id}.toml\"))),\n"))
        .collect();
    fs::write(out.join("languages.rs"), format!("&[\n{list}]\n"))
}
