//! `await` at the top level of a Python program, which plain Python refuses.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::answer::{Answer, difference};
use super::ours;
use super::program::Program;
use crate::support::{anyone, has};

#[test]
fn await_works_at_the_top_level_of_a_python_program() {
    let Some(hotcell) = anyone() else { return };
    if !has("python3") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/same/await");
    let programs = Program::read_all(&folder, &["py"]);
    let beside = |program: &Program, extension: &str| {
        fs::read_to_string(folder.join(&program.name).with_extension(extension)).unwrap_or_default()
    };
    // Control: Python itself refuses the first of them.
    let plain = Command::new("python3")
        .arg(folder.join("plain_await.py"))
        .output()
        .expect("it runs");
    assert!(
        String::from_utf8_lossy(&plain.stderr).contains("SyntaxError: 'await' outside function")
    );
    let over_mcp = ours::over_mcp(&hotcell, &[], &programs);
    let mut told = Vec::new();
    for (program, over_mcp) in programs.iter().zip(over_mcp) {
        let expected = Answer {
            code: Some(beside(program, "code").trim().parse().unwrap_or(0)),
            signal: None,
            stdout: beside(program, "out"),
            stderr: beside(program, "err"),
        };
        for found in [over_mcp, ours::cold(&hotcell, program)] {
            let differs = difference(&expected, &found);
            told.extend(differs.map(|differs| format!("=== {}\n{differs}", program.name)));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
