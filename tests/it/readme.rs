//! The README's examples print what it says they print.

use std::path::Path;
use std::process::Command;

#[test]
fn every_console_example_prints_what_the_readme_shows() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let blocks: Vec<&str> = readme
        .split("```console\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        for example in block.split("$ ").filter(|example| !example.is_empty()) {
            let (command, shown) = example.split_once('\n').unwrap();
            assert_eq!(run(command), shown, "$ {command}");
        }
    }
}

/// Both streams together, as a person at a terminal sees them.
fn run(command: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_hotcell")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}; }} 2>&1")])
        .env("PATH", path)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
