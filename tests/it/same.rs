//! A program cannot tell hotcell from the plain interpreter, and neither can who reads its output.
//!
//! `tests/same` holds small programs, one fact each. Every one runs plain, over MCP and by
//! `hotcell run`; stdout, stderr, exit code and signal must be the same to the letter. What a
//! sandbox must change (uid, host name, limits) no program there prints.

pub mod answer;
pub mod ours;
mod plain;
pub mod program;
mod top_level;
mod typescript;

use std::path::Path;
use std::thread;

use answer::{Answer, difference};
use plain::Plain;
use program::Program;

use crate::support::{Hotcell, everyone, has, skip};

/// Programs that do not say the same behind other walls, with the reason.
const DIFFERENT: [(&str, &str, &str); 1] = [(
    "podman",
    "argv_orig.py",
    "a new interpreter there is started with -u",
)];

/// Of all programs that are compared.
const EXTENSIONS: [&str; 8] = ["py", "js", "mjs", "cjs", "sh", "pl", "rb", "php"];

#[test]
fn python_programs_say_the_same_as_without_hotcell() {
    if has("python3") {
        compare("python", 150);
    }
}

#[test]
fn python_programs_that_share_nothing_say_the_same_as_without_hotcell() {
    if has("python3") {
        // Each starts an interpreter of its own, which takes its time: a third of them.
        compare_with("python", 150, &["--trust", "separate"], 3);
    }
}

#[test]
fn node_programs_say_the_same_as_without_hotcell() {
    if has("node") {
        compare("node", 40);
    }
}

#[test]
fn shell_programs_say_the_same_as_without_hotcell() {
    if has("bash") {
        compare("shell", 20);
    }
}

#[test]
fn perl_programs_say_the_same_as_without_hotcell() {
    if has("perl") {
        compare("perl", 20);
    }
}

#[test]
fn ruby_programs_say_the_same_as_without_hotcell() {
    if has("ruby") {
        compare("ruby", 20);
    }
}

#[test]
fn php_programs_say_the_same_as_without_hotcell() {
    if has("php") {
        compare("php", 20);
    }
}

#[test]
fn a_program_that_does_not_say_the_same_would_be_noticed() {
    let Some((serving, running, plain)) = surroundings() else {
        return;
    };
    if !has("python3") {
        return;
    }
    // Control: this one asks for what a cell has and a plain process has not.
    let code = "import sys, os\nprint(os.path.exists('/etc/shadow'))\nsys.exit(os.getuid() % 7)";
    let program = Program::of("control.py", code);
    let expected = plain.run(&program);
    let found = ours::over_mcp(&serving, &[], std::slice::from_ref(&program)).remove(0);
    let cold = ours::cold(&running, &program);
    let told = difference(&expected, &found).expect("it differs");
    assert!(told.contains("stdout") && told.contains("-True"), "{told}");
    assert_eq!(found, cold);
}

/// Runs a folder of programs in all ways and tells of every difference at once.
fn compare(folder: &str, at_least: usize) {
    compare_with(folder, at_least, &[], 1);
}

/// The same by a server with these options, and for one of so many programs.
fn compare_with(folder: &str, at_least: usize, options: &[&str], of: usize) {
    let Some((serving, running, plain)) = surroundings() else {
        return;
    };
    compare_in((&serving, &running, &plain), folder, at_least, options, of);
}

/// The same behind the walls that `hotcell` has.
pub fn compare_within(hotcell: &Hotcell, folder: &str, at_least: usize, of: usize) {
    let plain = Plain::new(hotcell);
    compare_in((hotcell, hotcell, &plain), folder, at_least, &[], of);
}

fn compare_in(
    (serving, running, plain): (&Hotcell, &Hotcell, &Plain),
    folder: &str,
    at_least: usize,
    options: &[&str],
    of: usize,
) {
    let walls = serving.isolation;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/same")
        .join(folder);
    let programs = Program::read_all(&folder, &EXTENSIONS);
    assert!(
        programs.len() >= at_least,
        "only {} programs",
        programs.len()
    );
    let (programs, without): (Vec<_>, Vec<_>) = programs
        .into_iter()
        .step_by(of)
        .partition(|program| plain.has_needs(program));
    let differs = |program: &Program| {
        let here = DIFFERENT.iter().filter(|it| Some(it.0) == walls);
        here.into_iter().find(|it| it.1 == program.name)
    };
    for program in without {
        skip(&format!("{}: needs {:?}", program.name, program.needs));
    }

    let (served, named): (Vec<_>, Vec<_>) = programs
        .iter()
        .partition(|program| program.has_usual_name());
    let served: Vec<Program> = served.into_iter().cloned().collect();
    let (expected, cold, over_mcp) = thread::scope(|scope| {
        let expected = scope.spawn(|| in_turns(&programs, |program| plain.run(program)));
        let cold = scope.spawn(|| in_turns(&programs, |program| ours::cold(running, program)));
        let over_mcp = scope.spawn(|| ours::over_mcp(serving, options, &served));
        [expected, cold, over_mcp]
            .map(|thread| thread.join().expect("no run panics"))
            .into()
    });
    let find = |name: &str| programs.iter().position(|program| program.name == name);
    let mut told = Vec::new();
    let pairs = programs
        .iter()
        .zip(&cold)
        .map(|(program, found)| (program, "cold", found));
    let pairs = pairs.chain(
        served
            .iter()
            .zip(&over_mcp)
            .map(|(program, found)| (program, "over MCP", found)),
    );
    for (program, way, found) in pairs {
        let at = find(&program.name).expect("it ran plain");
        match (difference(&expected[at], found), differs(program)) {
            (Some(_), Some((_, name, why))) => println!("{name} {way} differs: {why}"),
            (Some(difference), None) => {
                told.push(format!("=== {} {way}\n{difference}", program.name));
            }
            (None, _) => {}
        }
    }
    println!(
        "{} programs, {} of them not over MCP",
        programs.len(),
        named.len()
    );
    assert!(
        told.is_empty(),
        "{} differ:\n{}",
        told.len(),
        told.join("\n")
    );
}

/// Two at a time: more would only wait for each other.
fn in_turns(programs: &[Program], run: impl Fn(&Program) -> Answer + Sync) -> Vec<Answer> {
    let half = programs.len().div_ceil(2);
    thread::scope(|scope| {
        let halves = programs
            .chunks(half)
            .map(|half| scope.spawn(|| half.iter().map(&run).collect::<Vec<_>>()));
        let halves: Vec<_> = halves.collect();
        halves
            .into_iter()
            .flat_map(|half| half.join().expect("no run panics"))
            .collect()
    })
}

/// Who serves and who runs (root and an ordinary user, if both can), and the place beside them
/// where programs run plain.
fn surroundings() -> Option<(Hotcell, Hotcell, Plain)> {
    let serving = everyone().into_iter().next()?;
    let running = everyone().pop()?;
    if !rustix::process::getuid().is_root() {
        skip("only root can lay out a plain /workspace to compare with");
        return None;
    }
    let plain = Plain::new(&serving);
    Some((serving, running, plain))
}
