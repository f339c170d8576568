//! The prose of the cases that exhaust something.

use std::time::Duration;

use super::super::verdict::NOISE;
use super::super::witness;
use super::{KEPT, Seen};

/// What a program may have when nothing is asked for, in MiB.
const MEMORY: u64 = 512;

/// Tells `holds` of each sentence whether it does.
pub fn check(seen: &Seen, holds: &mut dyn FnMut(bool, &str)) {
    let out = seen.text("stdout");
    let err = seen.text("stderr");
    match seen.case.short() {
        "RES-01" => {
            holds(
                err.contains("Resource temporarily unavailable"),
                "fork fails with EAGAIN",
            );
            holds(seen.growth() < 20 << 10, "server RSS growth < 20 MiB");
        }
        "RES-03" | "RES-15" => {
            holds(
                seen.result["error"]["kind"] == "memory",
                "reported as memory limit",
            );
            holds(shared_is_back(seen), "memory is back");
        }
        "RES-04" => {
            let sizes = out
                .lines()
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            holds(sizes.max().unwrap_or(0) <= 1 << 20, "ENOSPC at the cap");
            holds(shared_is_back(seen), "the space returns");
        }
        "RES-05" => {
            // Where no control group would charge the pages the call does not exist.
            let absent = err.contains("memfd_create") && err.contains("Function not implemented");
            let charged = number_after(&out, "SAFE").is_some_and(|mib| mib <= MEMORY);
            holds(
                absent || charged || seen.result["status"] == "memory",
                "memfd pages are charged",
            );
            holds(shared_is_back(seen), "the pages return");
        }
        "RES-06" => {
            let capped = number_after(&out, "SAFE").is_some_and(|files| files <= 200_000);
            holds(
                capped || seen.result["status"] == "timeout",
                "ENOSPC at the inode cap",
            );
            let ended = seen.result["duration_ms"].as_f64().unwrap_or(0.0);
            let ended = Duration::from_secs_f64(ended / 1e3);
            holds(
                seen.answer.elapsed < ended + NOISE,
                "what it made does not delay the answer for long",
            );
        }
        "RES-07" => {
            let used = seen.answer.traces.processor.as_secs_f64();
            let limit = seen.run.wall.as_secs_f64() * 1.2;
            holds(used > 0.1, "the program spun at all");
            holds(
                used <= limit,
                &format!("CPU used: {used} s <= limit x wall x 1.2"),
            );
        }
        "RES-08" => {
            for name in ["stdout", "stderr"] {
                holds(
                    seen.truncated(name).is_some(),
                    "truncated=true on both streams",
                );
                holds(
                    seen.text(name).len() <= KEPT + 256,
                    "each stream <= its cap",
                );
            }
            holds(
                seen.growth() <= 12 << 10,
                "server RSS growth is bounded by the caps",
            );
        }
        "RES-09" => {
            let count = number_after(&out, "SAFE").unwrap_or(0);
            holds(
                out.contains("Too many open files") && (1..=1024).contains(&count),
                "EMFILE at the limit",
            );
        }
        _ => {}
    }
}

/// Pages of a tmpfs or memfd that lived on would show here; ordinary work of
/// the host hardly does.
fn shared_is_back(seen: &Seen) -> bool {
    let left = || witness::memory("Shmem").saturating_sub(seen.shared) > 64 << 10;
    let look = || {
        left()
            .then(|| "shared memory".to_owned())
            .into_iter()
            .collect()
    };
    witness::settled(NOISE, look).is_empty()
}

/// The last number on the first line that starts with `word`.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(word))?;
    let numbers = line
        .split(|char: char| !char.is_ascii_digit())
        .filter(|part| !part.is_empty());
    numbers.filter_map(|part| part.parse().ok()).max()
}
