//! From a case to something the command line can run. C and C++ are no languages of
//! the product yet, so a shell script stands in front of them: C is compiled out here
//! and the binary placed in the cell; the C++ case attacks the compiler, which
//! therefore runs inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::case::{Case, Outcome};
use super::pass::{Run, open_to_all};

/// Makes the run of a case, or says why this machine cannot. What has to be compiled
/// goes to `folder`.
pub fn run(case: &Case, folder: &Path) -> Result<Run, String> {
    let wall = wall(case);
    let plain = |language| Run {
        language,
        code: case.code.clone(),
        wall,
        files: Vec::new(),
    };
    match case.language.as_str() {
        "python" => Ok(plain("python")),
        "javascript" => Ok(plain("javascript")),
        "bash" => Ok(plain("bash")),
        "c" => {
            let files = vec![(compile(case, folder)?, "attack")];
            Ok(Run {
                code: "exec ./attack\n".to_owned(),
                files,
                ..plain("bash")
            })
        }
        "cpp" => {
            let files = vec![(source(case, folder, "cpp"), "bomb.cpp")];
            Ok(Run {
                code: "exec g++ -o bomb bomb.cpp\n".to_owned(),
                files,
                ..plain("bash")
            })
        }
        other => Err(format!("no driver for the language {other}")),
    }
}

/// Compiles a C case, without libraries where it can be.
pub fn compile(case: &Case, folder: &Path) -> Result<PathBuf, String> {
    let source = source(case, folder, "c");
    let binary = source.with_extension("bin");
    let build = |extra: &[&str]| {
        let mut gcc = Command::new("gcc");
        gcc.args(extra)
            .args(["-w", "-pthread", "-o"])
            .arg(&binary)
            .arg(&source);
        gcc.output().is_ok_and(|output| output.status.success())
    };
    match build(&["-static"]) || build(&[]) {
        true => Ok(binary),
        false => Err("no C compiler on this machine".to_owned()),
    }
}

/// How long a case may run. Where a timeout is the outcome it is short; RES-07 needs
/// more, since the coarse limit of a host without control groups is one second over.
/// Others end by themselves, however busy the machine is.
fn wall(case: &Case) -> Duration {
    let seconds = match case.short() {
        "RES-07" => 6,
        "RES-06" | "RES-11" => 10,
        "ART-06" => 20,
        _ if case.outcomes().contains(&Outcome::Timeout) => 3,
        _ => 30,
    };
    Duration::from_secs(seconds)
}

fn source(case: &Case, folder: &Path, extension: &str) -> PathBuf {
    let path = folder.join(format!("{}.{extension}", case.short()));
    fs::write(&path, &case.code).expect("a source can be written");
    open_to_all(&path);
    path
}
