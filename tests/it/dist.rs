//! What `scripts/dist` makes can be installed where there is nothing, and works there. Here it packages the binary of these tests.

mod image;
mod registries;
mod roots;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::has;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All packages, made once: without its debugging information the binary is half as large.
fn packages() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).unwrap();
        let binary = out.join("hotcell");
        let stripped = Command::new("strip")
            .args(["-o", &binary.display().to_string()])
            .arg(env!("CARGO_BIN_EXE_hotcell"))
            .status();
        if !stripped.is_ok_and(|status| status.success()) {
            fs::copy(env!("CARGO_BIN_EXE_hotcell"), &binary).unwrap();
        }
        let mut command = Command::new("python3");
        command.arg(format!("{ROOT}/scripts/dist"));
        command.env("HOTCELL", &binary).env("OUT", &out);
        succeed(&mut command);
        out
    })
}

/// What it prints, if it ends well.
fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{said}");
    text
}

/// It says what it is, and runs a program in a sandbox.
fn works(mut hotcell: impl FnMut(&[&str]) -> Command) {
    let said = succeed(&mut hotcell(&["--version"]));
    assert!(said.starts_with(&format!("hotcell {VERSION} (")), "{said}");
    let printed = succeed(&mut hotcell(&["run", "-l", "lua", "-c", "print(6 * 7)"]));
    assert_eq!(printed, "42\n");
}

/// Completions and manual pages, in a folder `share`.
fn has_tools(share: &Path) {
    for there in [
        "man/man1/hotcell.1",
        "man/man1/hotcell-run.1",
        "bash-completion/completions/hotcell",
        "zsh/site-functions/_hotcell",
        "fish/vendor_completions.d/hotcell.fish",
    ] {
        assert!(share.join(there).exists(), "{there}");
    }
}

fn file(name: &str) -> String {
    packages().join(name).display().to_string()
}

#[test]
fn the_bundle_and_the_registry_file_are_what_their_schemas_say() {
    let valid = |schema: &str, value: &Value| {
        let schema = fs::read(format!("{ROOT}/tests/data/{schema}")).unwrap();
        let schema: Value = serde_json::from_slice(&schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors = validator.iter_errors(value).map(|error| error.to_string());
        errors.collect::<Vec<_>>()
    };
    let server: Value = serde_json::from_slice(&fs::read(file("server.json")).unwrap()).unwrap();
    assert_eq!(valid("server.schema.json", &server), [""; 0]);
    let bundle = format!("hotcell-{VERSION}-{}-linux.mcpb", std::env::consts::ARCH);
    let folder = tempfile::tempdir().unwrap();
    let mut archive = zip::ZipArchive::new(fs::File::open(file(&bundle)).unwrap()).unwrap();
    archive.extract(folder.path()).unwrap();
    let manifest = fs::read(folder.path().join("manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(valid("mcpb-manifest-v0.3.schema.json", &manifest), [""; 0]);
    has_tools(&folder.path().join("share"));
    // As Claude Desktop starts it.
    let start = &manifest["server"]["mcp_config"];
    let command = start["command"].as_str().unwrap();
    let command = command.replace("${__dirname}", &folder.path().display().to_string());
    works(|words| {
        let mut command = Command::new(&command);
        command.args(words).env("HOME", folder.path());
        command
    });
    // Control: the schema is one that refuses.
    manifest["server"]["type"] = "strange".into();
    assert_ne!(valid("mcpb-manifest-v0.3.schema.json", &manifest), [""; 0]);
}

#[test]
fn cargo_binstall_is_told_of_the_tarball_and_the_program_in_it() {
    let manifest = fs::read_to_string(format!("{ROOT}/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let told = &manifest["package"]["metadata"]["binstall"];
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let words = [
        ("{ repo }", "https://example.com/hotcell"),
        ("{ version }", VERSION),
        ("{ target }", &target),
        ("{ bin }", "hotcell"),
        ("{ binary-ext }", ""),
    ];
    let filled = |key: &str| {
        let text = told[key].as_str().unwrap().to_owned();
        words.iter().fold(text, |text, it| text.replace(it.0, it.1))
    };
    assert_eq!(filled("pkg-fmt"), "tgz");
    let url = filled("pkg-url");
    let name = url.rsplit('/').next().unwrap();
    let listed = succeed(Command::new("tar").arg("-tzf").arg(file(name)));
    let program = filled("bin-dir");
    assert!(listed.lines().any(|line| line == program), "{program}");
}

#[test]
fn shells_complete_what_hotcell_takes() {
    let hotcell = env!("CARGO_BIN_EXE_hotcell");
    let shell = |name: &str, script: &str| {
        has(name).then(|| {
            succeed(
                Command::new(name)
                    .args(["-c", script])
                    .env("HOTCELL", hotcell),
            )
        })
    };
    let script = "source <($HOTCELL completions bash); COMP_WORDS=(hotcell install op); COMP_CWORD=2; COMP_LINE='hotcell install op'; _hotcell hotcell op install; echo ${COMPREPLY[@]}";
    if let Some(found) = shell("bash", script) {
        assert_eq!(found, "opencode\n");
    }
    let script = "$HOTCELL completions fish | source; complete -C 'hotcell inst'";
    if let Some(found) = shell("fish", script) {
        assert!(found.starts_with("install\t"), "{found}");
    }
    if let Some(found) = shell("zsh", "$HOTCELL completions zsh | zsh -n && echo fine") {
        assert_eq!(found, "fine\n");
    }
}

#[test]
fn two_packagings_of_one_binary_have_one_hash() {
    let again = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages-again");
    let mut command = Command::new("python3");
    // One of each kind of archive.
    command
        .arg(format!("{ROOT}/scripts/dist"))
        .args(["deb", "npm", "mcpb"]);
    command
        .env("HOTCELL", packages().join("hotcell"))
        .env("OUT", &again)
        .env("TZ", "Asia/Tokyo");
    succeed(&mut command);
    let mut compared = 0;
    for entry in fs::read_dir(packages()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let Ok(other) = fs::read_to_string(again.join(&name)) else {
            continue;
        };
        if name.ends_with(".sha256") {
            assert_eq!(fs::read_to_string(entry.path()).unwrap(), other);
            compared += 1;
        }
    }
    assert_eq!(compared, 5);
    fs::remove_dir_all(&again).unwrap();
}
