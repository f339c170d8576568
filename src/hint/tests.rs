use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn all() -> Vec<Hint> {
    let names = || vec!["a".to_owned(), "b".to_owned()];
    vec![
        Hint::OfDefinition("Grant it with {network}.".to_owned()),
        Hint::GiveCode,
        Hint::GiveInput,
        Hint::GiveFile,
        Hint::GiveMount,
        Hint::GiveLock,
        Hint::NameLanguage,
        Hint::ListLanguages,
        Hint::NamePackage,
        Hint::NameRefusedPackage {
            candidates: names(),
            why: "it is new".to_owned(),
        },
        Hint::ChangePackages {
            candidates: names(),
        },
        Hint::NameInsteadOf {
            installer: "pip".to_owned(),
            packages: names(),
            registry: None,
        },
        Hint::NameInsteadOf {
            installer: "npm".to_owned(),
            packages: names(),
            registry: Some("npm"),
        },
        Hint::RenameFile,
        Hint::Raise(Limit::Timeout, Some("600 s".to_owned())),
        Hint::Raise(Limit::Memory, Some("16 GiB".to_owned())),
        Hint::Raise(Limit::Memory, None),
        Hint::Raise(Limit::Processes, Some("4096".to_owned())),
        Hint::OpenFolder("/data".to_owned()),
        Hint::AllowWriting("/data".to_owned()),
        Hint::RaiseOutput,
        Hint::ShrinkFiles,
        Hint::GrantHost(None),
        Hint::GrantHost(Some("a.test".to_owned())),
        Hint::GrantRefused("a.test".to_owned()),
        Hint::AllowReduced,
    ]
}

/// The words between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn a_tool_is_never_told_of_a_flag_nor_the_command_line_of_a_parameter() {
    let parameters = [
        "code",
        "language",
        "stdin",
        "files",
        "packages",
        "network",
        "timeout",
        "memory",
        "cpus",
        "processes",
    ];
    for hint in all() {
        let told = hint.words(Surface::CommandLine);
        let bad = quoted(&told).into_iter().find(|it| parameters.contains(it));
        assert_eq!(bad, None, "{told}");
        for surface in [Surface::Mcp, BARE, PYTHON, DENO, BRIDGE] {
            let told = hint.words(surface);
            let bad = quoted(&told).into_iter().find(|it| it.contains("--"));
            assert_eq!(bad, None, "{told}");
            assert!(told.ends_with(['.', '?']), "{told}");
        }
    }
}

const BARE: Surface = Surface::Compat(Shown {
    packages: false,
    timeout: false,
    deno: false,
});
const PYTHON: Surface = Surface::Compat(Shown {
    packages: true,
    timeout: false,
    deno: false,
});
const DENO: Surface = Surface::Compat(Shown {
    packages: false,
    timeout: false,
    deno: true,
});
const BRIDGE: Surface = Surface::Compat(Shown {
    packages: false,
    timeout: true,
    deno: false,
});

#[test]
fn a_tool_of_another_server_is_never_told_of_a_parameter_that_it_does_not_show() {
    let asked_for = [Hint::GiveLock, Hint::RenameFile, Hint::ShrinkFiles];
    let theirs = [Hint::NameLanguage, Hint::ListLanguages];
    for (surface, shown) in [
        (BARE, &["code"][..]),
        (PYTHON, &["code", "packages"]),
        (DENO, &["code"]),
        (BRIDGE, &["code", "timeout"]),
    ] {
        for hint in all() {
            // About a parameter that the call had, or in the words of the other server.
            if asked_for.contains(&hint) || theirs.contains(&hint) {
                continue;
            }
            let told = hint.words(surface);
            let parameters = ["stdin", "files", "packages", "network", "timeout", "memory"];
            let bad = quoted(&told)
                .into_iter()
                .find(|it| parameters.contains(it) && !shown.contains(it));
            assert_eq!(bad, None, "{surface:?}: {told}");
        }
    }
}

/// Every file of Rust below a folder, but not of the command line.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("src/cli") && !path.ends_with("src/hint") {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_other_module_names_a_flag_of_run_in_a_text() {
    let flags = [
        "allow-reduced",
        "file",
        "language",
        "lock",
        "memory",
        "mount",
        "network",
        "output-limit",
        "package",
        "pids",
        "timeout",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files.retain(|file| !file.ends_with("src/hint.rs") && !file.ends_with("src/cli.rs"));
    assert!(files.len() > 100, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let named = flags
                .iter()
                .find(|flag| line.contains(&format!("`--{flag}")));
            assert_eq!(named, None, "{}: {line}", file.display());
        }
    }
}
