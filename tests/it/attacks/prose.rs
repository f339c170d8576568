//! The prose of `expect`, as far as a driver can assert it. Each arm below is one
//! case, and each sentence that fails is named.

mod resources;

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::answer::Answer;
use super::case::Case;
use super::pass::{Pass, Run, Way};
use super::witness;

/// How much of a stream an answer keeps; the note that stands for the rest is short.
const KEPT: usize = 1 << 20;

/// All that is known of one case when it is judged.
pub struct Seen<'a> {
    pub case: &'a Case,
    pub pass: &'a Pass,
    pub run: &'a Run,
    pub answer: &'a Answer,
    pub result: &'a Value,
    /// The server's memory for a program that does nothing, in KiB.
    pub idle: u64,
    /// The host's shared memory before the case, in KiB.
    pub shared: u64,
}

/// The sentences of the case that do not hold.
pub fn check(seen: &Seen) -> Vec<String> {
    let mut failed = Vec::new();
    let mut holds = |condition: bool, sentence: &str| {
        if !condition {
            failed.push(sentence.to_owned());
        }
    };
    if seen.case.category == "resource-exhaustion" {
        resources::check(seen, &mut holds);
        return failed;
    }
    let out = seen.text("stdout");
    let err = seen.text("stderr");
    match seen.case.short() {
        "PRC-07" => holds(out.matches("SAFE").count() == 8, "all eight lines are SAFE"),
        "FSE-01" => {
            for place in ["/root", "/home", "/data"] {
                let line = out
                    .lines()
                    .find(|line| line.starts_with(&format!("SAFE {place} ")));
                let gone =
                    line.is_some_and(|line| line.ends_with("[]") || line.ends_with("directory"));
                holds(gone, "/root, /home, /data are absent or empty");
            }
        }
        "FSE-02" => {
            for place in [
                "/", "/usr", "/usr/bin", "/lib", "/etc", "/opt", "/var", "/dev",
            ] {
                holds(
                    !Path::new(place).join(".sbx").exists(),
                    "the host's trees are unchanged",
                );
            }
        }
        "FSE-07" => holds(
            only_plain_devices(&out),
            "/dev holds only the plain devices",
        ),
        "FSE-08" => {
            let same =
                fs::read(seen.pass.binary()).ok() == fs::read(env!("CARGO_BIN_EXE_hotcell")).ok();
            holds(same, "the server binary is unchanged");
        }
        "INF-04" => {
            let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            holds(
                !out.lines().any(|line| line == host.trim()),
                "the host's name does not appear",
            );
            holds(
                !out.contains(&*seen.pass.directory().to_string_lossy()),
                "no server path appears",
            );
            holds(groups_are_hidden(seen), "/proc/self/cgroup shows '/'");
        }
        "INF-08" => {
            holds(
                !out.contains(&witness::memory("MemTotal").to_string()),
                "the host's memory is hidden",
            );
        }
        "NET-01" => {
            holds(
                out.matches("Network is unreachable").count() == 3,
                "ENETUNREACH for each",
            );
        }
        "KRN-03" => holds(out.contains("SAFE clone3 ENOSYS"), "clone3 is ENOSYS"),
        "KRN-05" => {
            let refused = seen.result["signal"] == "SIGSYS" || out.contains("SAFE");
            holds(out.contains("try") && refused, "SIGSYS or ENOSYS");
        }
        "KRN-10" => holds(
            out.contains("SAFE functional"),
            "stdout contains 'SAFE functional'",
        ),
        "KRN-12" => {
            holds(out.contains("modify_ldt (-1"), "modify_ldt is refused");
            holds(out.contains("ptrace traceme (-1"), "ptrace is refused");
        }
        "LEK-03" => {
            let private = |fd: u8| out.contains(&format!("\n{fd} pipe:["));
            holds(private(1) && private(2), "fds 1 and 2 are private pipes");
        }
        "LEK-06" => holds(out.contains("HOME=/workspace"), "HOME is a fresh directory"),
        "XRN-04" => {
            let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
            holds(
                !segments.contains(&0x5b5c_0001_u32.to_string()),
                "no orphan segment on the host",
            );
        }
        "OUT-01" => {
            let frame = "\"text\":\"SPOOF\"}]}}\n{\"jsonrpc\"";
            holds(
                out.contains(frame) && err.contains(frame),
                "the text arrives inside the result",
            );
        }
        "OUT-03" => holds(
            out.contains("\u{1b}]52;c;") && out.contains("BAD"),
            "the bytes arrive escaped",
        ),
        "OUT-04" => holds(
            out.contains('\u{fffd}') && out.contains("ABC"),
            "replaced and readable",
        ),
        "OUT-05" => {
            holds(
                seen.truncated("stdout") == Some((50 << 20) + 2_000_000),
                "the whole size is told",
            );
            holds(out.len() <= KEPT + 256, "head and tail fit the cap");
            holds(
                out.starts_with("AAAA") && out.ends_with("\n\n"),
                "head and tail are kept",
            );
            holds(
                seen.growth() <= 12 << 10,
                "server RSS growth is bounded by the cap",
            );
        }
        "OUT-06" => {
            holds(seen.result["exit_code"] == 7, "exit code 7");
            let artifacts = seen.result["artifacts"]
                .as_array()
                .is_none_or(Vec::is_empty);
            holds(
                artifacts && seen.truncated("stdout").is_none(),
                "no artifact, no truncation",
            );
        }
        "OUT-09" => {
            let written = out.matches('x').count();
            // An answer over MCP has less room; the rest is kept elsewhere.
            let least = match seen.pass.way {
                Way::New | Way::Within(_) => 65_536,
                Way::Pooled | Way::Forked => 20_000,
            };
            holds(
                written >= least && !out.contains("gone"),
                "what was written before the redirect",
            );
        }
        _ => {}
    }
    failed
}

impl Seen<'_> {
    fn text(&self, name: &str) -> String {
        self.result[name].as_str().unwrap_or_default().to_owned()
    }

    /// How many bytes a cut stream had in all.
    fn truncated(&self, name: &str) -> Option<u64> {
        self.result["total_bytes"][name].as_u64()
    }

    /// By how much the server outgrew one that runs nothing, in KiB.
    fn growth(&self) -> u64 {
        self.answer.peak.saturating_sub(self.idle)
    }
}

fn only_plain_devices(out: &str) -> bool {
    let plain = [
        "null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd", "stdin",
        "stdout", "stderr",
    ];
    let Some(list) = out.lines().find(|line| line.starts_with('[')) else {
        return false;
    };
    let mut names = list
        .trim_matches(['[', ']'])
        .split(", ")
        .map(|name| name.trim_matches('\''));
    names.all(|name| plain.contains(&name))
}

/// The case cuts its listing short, so one more run asks for this line alone.
fn groups_are_hidden(seen: &Seen) -> bool {
    let code = "print(open('/proc/self/cgroup').read(), end='')\n".to_owned();
    let answer = seen.pass.run(&Run {
        language: "python",
        code,
        wall: seen.run.wall,
        files: Vec::new(),
    });
    let result = answer.json().unwrap_or_default();
    let text = result["stdout"].as_str().unwrap_or_default();
    result["status"] == "ok" && text.lines().all(|line| line.ends_with(":/"))
}
