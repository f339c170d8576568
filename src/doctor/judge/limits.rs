//! Whether the limits end, or refuse, what runs into them.

use std::time::Duration;

use rustix::io::Errno;

use super::{Kept, check, fix, must, quotas, said};
use crate::doctor::cells::{self, Findings, Probed, TASKS};
use crate::doctor::question::Fact;
use crate::doctor::{Check, Group};
use crate::run::Outcome;

/// How long anything in a cell may live on after its deadline.
const LATEST: Duration = Duration::from_secs(2);

pub fn checks(findings: &Findings) -> [Check; 5] {
    // Without control groups someone counts by the cell's /proc.
    let holders = ["control groups", "private /proc"];
    let late = findings.endless.as_ref().map(|ended| ended.late);
    let late = late.unwrap_or_default().as_secs_f64() * 1e3;
    let isolation = &findings.result.isolation;
    let limit = |name, means: &str, kept: Kept, probed: &Probed, walls: &[&str]| {
        check(
            Group::Limits,
            name,
            means.to_owned(),
            kept,
            || match probed {
                Ok(_) if !walls.is_empty() => fix(walls, isolation),
                // There was a sandbox before, so there can be one.
                _ => "Run again when the machine has less to do.".to_owned(),
            },
        )
    };
    let Findings {
        memory: taken,
        processes: started,
        endless: stayed,
        fill,
        ..
    } = findings;
    [
        limit(
            "memory limit",
            "a program that takes more is ended",
            memory(taken),
            taken,
            &holders,
        ),
        limit(
            "process limit",
            "a program that starts more is refused",
            processes(started),
            started,
            &holders,
        ),
        limit(
            "time limit",
            &format!("an endless program is gone {late:.1} ms after its deadline"),
            endless(stayed),
            stayed,
            &[],
        ),
        limit(
            "storage limit",
            "what it can write to has room for so many bytes and files, and no file is larger than it may be",
            quotas::storage(fill),
            fill,
            &["private root"],
        ),
        limit(
            "open file limit",
            "a program that opens more is refused",
            quotas::open_files(fill),
            fill,
            &["private root"],
        ),
    ]
}

fn memory(probed: &Probed) -> Kept {
    ended_as(Outcome::OutOfMemory, probed).map(drop)
}

fn processes(probed: &Probed) -> Kept {
    let ended = probed.as_ref().map_err(ToString::to_string)?;
    let facts = cells::facts(&ended.result);
    let (count, errno) = said!(facts, Fact::Started { count, errno } => (*count, *errno))?;
    let again = Errno::AGAIN.raw_os_error();
    must(count < TASKS && errno == Some(again), || {
        format!("{count} were started, then error {errno:?}")
    })
}

fn endless(probed: &Probed) -> Kept {
    let late = ended_as(Outcome::TimedOut, probed)?;
    must(late < LATEST, || format!("it took {} ms", late.as_millis()))
}

/// How late the answer came, if the probe ended as it should.
fn ended_as(expected: Outcome, probed: &Probed) -> Result<Duration, String> {
    let ended = probed.as_ref().map_err(ToString::to_string)?;
    let outcome = ended.result.outcome;
    must(outcome == expected, || format!("it ended as {outcome:?}"))?;
    Ok(ended.late)
}
