//! The hostile suite: every program of `tests/attacks/attacks.json` runs in a real
//! cell, started by the real binary, as root and as an ordinary user, and a witness
//! outside looks at what it did and what it left.
//!
//! `case` reads the file and `scope` says which cases are driven; `pass` starts the
//! binary; `verdict`, `prose` and `steps` judge; `witness` and `canary` look from
//! outside; `controls` shows that each detector fires when nothing holds a program.

mod answer;
mod canary;
pub mod case;
mod company;
mod controls;
mod drive;
mod pass;
mod programs;
mod prose;
mod scope;
mod served;
mod steps;
mod verdict;
mod witness;

use std::io::{self, Write};
use std::sync::Mutex;
use std::thread;

use canary::Canaries;
use case::Case;
use drive::Scene;
use pass::{Pass, Way};
use scope::Scope;
use verdict::Before;

use crate::containers::containers_of_any;
use crate::support::isolation;

/// How many cases run side by side.
const IN_FLIGHT: usize = 3;

#[test]
fn no_hostile_program_gets_out_of_its_cell() {
    match isolation::chosen() {
        Some(isolation) => nothing_gets_out_of(isolation, |_| true),
        None => nothing_gets_out(Way::New, &chosen()),
    }
}

#[test]
fn no_hostile_program_gets_out_of_a_cell_that_waited_for_it() {
    if let Some(isolation) = isolation::chosen() {
        say(&format!(
            "SKIP pooled and forked cells are the jail's, not {isolation}'s"
        ));
        return;
    }
    let is_program = |case: &Case| scope::of(case) == Some(Scope::Program);
    let cases: Vec<Case> = chosen().into_iter().filter(is_program).collect();
    nothing_gets_out(Way::Pooled, &cases);
    // Only one language has a runtime that makes cells of itself.
    let forks = |case: &Case| case.language == "python";
    let cases: Vec<Case> = cases.into_iter().filter(forks).collect();
    nothing_gets_out(Way::Forked, &cases);
}

/// The same for programs behind other walls: all that can be driven by `hotcell run` there and that `is_asked` names.
pub fn nothing_gets_out_of(isolation: &'static str, is_asked: impl Fn(&str) -> bool) {
    let is_program = |case: &Case| scope::of(case) == Some(Scope::Program);
    let cases = chosen().into_iter().filter(is_program);
    let cases: Vec<Case> = cases.filter(|case| is_asked(&case.id)).collect();
    nothing_gets_out(Way::Within(isolation), &cases);
}

fn nothing_gets_out(way: Way, cases: &[Case]) {
    let canaries = Canaries::plant();
    let tallies: Vec<Tally> = Pass::all(&canaries, way)
        .iter()
        .map(|pass| suite(pass, &canaries, cases))
        .collect();

    let failed: Vec<&String> = tallies.iter().flat_map(|tally| &tally.failed).collect();
    for text in &failed {
        say(text);
    }
    for (id, note) in cases
        .iter()
        .filter_map(|case| Some((&case.id, case.note.as_ref()?)))
    {
        say(&format!("corrected case {id}: {note}"));
    }
    let lines: Vec<String> = tallies.iter().map(Tally::line).collect();
    say(&lines.join(", "));
    assert!(
        failed.is_empty(),
        "{} cases were not contained",
        failed.len()
    );
}

/// One pass in numbers, and each failure in words.
struct Tally {
    pass: &'static str,
    run: usize,
    failed: Vec<String>,
}

impl Tally {
    fn line(&self) -> String {
        format!(
            "contained {}/{} ({})",
            self.run.saturating_sub(self.failed.len()),
            self.run,
            self.pass
        )
    }
}

fn suite(pass: &Pass, canaries: &Canaries, cases: &[Case]) -> Tally {
    let idle = company::hello(pass);
    let result = idle.json().unwrap_or_default();
    assert_eq!(
        result["stdout"],
        "42\n",
        "as {} nothing runs at all: {}",
        pass.name,
        idle.shown()
    );
    say(&format!(
        "hostile suite as {}: isolation {}",
        pass.name, result["isolation"]["level"]
    ));

    let missing = company::unseen(pass, &result["isolation"]["walls"]);
    assert!(
        missing.is_empty(),
        "the witness is blind to a live run's {missing:?}"
    );

    let folder = tempfile::tempdir().expect("a folder for what is compiled");
    pass::open_to_all(folder.path());
    let scene = Scene {
        pass,
        canaries,
        before: Before::of(pass),
        idle: idle.peak,
        folder,
    };
    let mut bystander = company::bystander(pass);

    let (heavy, light): (Vec<&Case>, Vec<&Case>) = cases
        .iter()
        .partition(|case| case.category == "resource-exhaustion");
    let mut failed = side_by_side(&light, |case| drive::case(&scene, case));
    // These want the whole machine, and a clean look at what it has left afterwards.
    failed.extend(heavy.iter().filter_map(|case| drive::case(&scene, case)));

    if !matches!(bystander.try_wait(), Ok(None)) {
        failed.push(format!(
            "{}: a process of the same user outside was killed",
            pass.name
        ));
    }
    let _ = bystander.kill();
    let _ = bystander.wait();
    if pass.way.isolation() == Some("podman") {
        let servers = pass.servers.lock().expect("no driver panics").clone();
        let left = witness::settled(verdict::NOISE, || {
            let left = containers_of_any(&servers).into_iter();
            left.map(|it| format!("container {it} is left")).collect()
        });
        failed.extend(left);
    }
    if pass.uid != rustix::process::getuid().as_raw() {
        let left = witness::processes_of(pass.uid);
        failed.extend(
            (!left.is_empty()).then(|| format!("{}: processes {left:?} are left", pass.name)),
        );
    }
    Tally {
        pass: pass.name,
        run: cases.len(),
        failed,
    }
}

/// Gives the cases to a few threads and gathers their failures in the cases' order.
fn side_by_side(cases: &[&Case], drive: impl Fn(&Case) -> Option<String> + Sync) -> Vec<String> {
    let queue = Mutex::new(cases.iter().enumerate());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no driver panics").next();
                    let Some((place, case)) = next else { return };
                    if let Some(text) = drive(case) {
                        failed.lock().expect("no driver panics").push((place, text));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().expect("no driver panics");
    failed.sort();
    failed.into_iter().map(|(_, text)| text).collect()
}

/// The cases that are driven; `HOTCELL_ATTACKS=RES-01,KRN` picks some by their first
/// letters, for the one who works on a wall.
fn chosen() -> Vec<Case> {
    let wanted = std::env::var("HOTCELL_ATTACKS").unwrap_or_default();
    let driven = case::all()
        .into_iter()
        .filter(|case| scope::of(case) != Some(Scope::Excluded));
    driven
        .filter(|case| wanted.split(',').any(|prefix| case.id.starts_with(prefix)))
        .collect()
}

/// Prints past the capture of the test harness: the last line is the suite's result.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
