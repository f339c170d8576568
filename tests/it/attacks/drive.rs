//! One case, from its program to the list of what did not hold.

use tempfile::TempDir;

use super::canary::Canaries;
use super::case::Case;
use super::pass::Pass;
use super::scope::{self, Scope};
use super::verdict::{self, Before};
use super::{company, programs, prose, steps, witness};

/// What a case is judged against.
pub struct Scene<'a> {
    pub pass: &'a Pass,
    pub canaries: &'a Canaries,
    pub before: Before,
    /// The server's memory for a program that does nothing, in KiB.
    pub idle: u64,
    pub folder: TempDir,
}

/// Drives one case; the text of its failure names id, clauses and output.
pub fn case(scene: &Scene, case: &Case) -> Option<String> {
    let (failed, output) = match scope::of(case) {
        Some(Scope::Steps) => steps::carry_out(case, scene.pass, &scene.before, scene.canaries),
        _ => program(scene, case),
    };
    let failed = scope::without_known(scene.pass.way.isolation(), case, failed);
    (!failed.is_empty()).then(|| {
        format!(
            "NOT CONTAINED {} as {}: {}\n    {output}",
            case.id,
            scene.pass.name,
            failed.join("; ")
        )
    })
}

fn program(scene: &Scene, case: &Case) -> (Vec<String>, String) {
    let run = match programs::run(case, scene.folder.path()) {
        Ok(run) => run,
        Err(reason) => return (vec![format!("not run: {reason}")], String::new()),
    };
    // Two fresh cells for the cases about what one run leaves to the next.
    let times = if ["XRN-04", "XRN-08"].contains(&case.short()) {
        2
    } else {
        1
    };
    let mut failed = Vec::new();
    let mut output = String::new();
    for _ in 0..times {
        let shared = witness::memory("Shmem");
        let (answer, beside) = company::accompanied(scene.pass, case, &run);
        failed.extend(beside);
        failed.extend(verdict::judge(case, run.wall, &answer));
        if let Some(result) = answer.json() {
            let seen = prose::Seen {
                case,
                pass: scene.pass,
                run: &run,
                answer: &answer,
                result: &result,
                idle: scene.idle,
                shared,
            };
            failed.extend(prose::check(&seen));
        }
        failed.extend(verdict::aftermath(
            &answer,
            scene.pass,
            &scene.before,
            scene.canaries,
        ));
        output = answer.shown();
    }
    if scene.pass.way.is_command() && scope::STREAMED.contains(&case.short()) {
        // A person at a shell reads the output as it comes; that is another path.
        let answer = scene.pass.stream(&run);
        let mut broken = verdict::streamed(case, run.wall, &answer);
        broken.extend(verdict::aftermath(
            &answer,
            scene.pass,
            &scene.before,
            scene.canaries,
        ));
        failed.extend(
            broken
                .iter()
                .map(|text| format!("streamed: {text} ({})", answer.shown())),
        );
    }
    (failed, output)
}
