//! What goes wrong around a run: the server or its spawner is killed, something it needs
//! is used up, a control group will not go. Each ends in a plain answer or none, soon, and
//! with nothing left on the host.

mod killed;
mod scarce;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::left::{Before, groups, mark, processes, spawner};
use crate::support::{PATIENCE, Running, eventually, everyone, skip};

/// Programs that are busy in different ways, and say so when they are.
const BUSY: [(&str, &str); 7] = [
    ("sh", "echo up; sleep 600"),
    ("sh", "echo up; while :; do echo y; done"),
    (
        "python",
        "import os\nprint('up', flush=True)\nwhile True:\n    if os.fork() == 0: os._exit(0)\n    os.wait()",
    ),
    (
        "python",
        "import os, time\nfor _ in range(30):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n\
         print('up', flush=True)\ntime.sleep(600)",
    ),
    (
        "python",
        "import signal, time\nfor number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n    \
         except (OSError, ValueError): pass\nprint('up', flush=True)\ntime.sleep(600)",
    ),
    (
        "python",
        "print('up', flush=True)\nheld = []\nwhile True: held.append(bytearray(1 << 16))",
    ),
    (
        "python",
        "import os\nprint('up', flush=True)\nn = 0\nwhile True:\n    n += 1\n    \
         open(f'/tmp/{n % 999}', 'w').write('x' * 9999)",
    ),
];

#[test]
fn a_server_killed_at_any_moment_leaves_nothing() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut random = Random(0x5eed_1e55);
        for round in 0..100 {
            let (language, code) = BUSY[round / 2 % BUSY.len()];
            let marked = mark(&hotcell);
            let mut running = hotcell.start(&[&marked, "-l", language, "-c", code]);
            let pid = running.pid();
            // In turns from its very start on, and once the program is at work.
            if round % 2 == 1 {
                running.stdout.until("up\n");
            }
            thread::sleep(Duration::from_micros(random.below(30_000)));
            running.signal(Signal::KILL);
            let answer = running.finish();
            assert_eq!(answer.signal, Some(9), "round {round}: {}", answer.err());
            before.expect_nothing_left(pid);
        }
    }
}

#[test]
fn a_run_whose_spawner_is_killed_is_lost() {
    for hotcell in everyone() {
        for json in [true, false] {
            let before = Before::look(&hotcell);
            let marked = mark(&hotcell);
            let code = "echo up; exec sleep 600";
            let asked = [&marked, "-l", "sh", "-c", code, "--json"];
            let running = hotcell.start(&asked[..if json { 6 } else { 5 }]);
            let pid = running.pid();
            let sleeps = |process: &String| {
                let line = process.split_once(' ').map(|(_, line)| line);
                line == Some("sleep 600 ")
            };
            let at_work = || processes(&hotcell).iter().any(sleeps);
            assert!(eventually(PATIENCE, at_work));
            kill(spawner(pid).expect("its spawner"));

            let answer = running.finish();
            assert_eq!(answer.code, Some(125), "{}", answer.err());
            let message = "the program's sandbox vanished; what it did until then is unknown";
            if json {
                let result = answer.json();
                let error = json!({"kind": "lost", "message": message, "hint": "Run it again."});
                assert_eq!(
                    (&result["status"], &result["error"]),
                    (&json!("lost"), &error)
                );
                assert_eq!(result["stdout"], "up\n");
            } else {
                assert_eq!(
                    answer.err(),
                    format!("hotcell: {message}\nhint: Run it again.\n")
                );
            }
            before.expect_nothing_left(pid);
        }
    }
}

/// How often `words` are in what a process has written. `None` if we may not look.
fn count_in_memory(pid: u32, words: &str) -> Option<usize> {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut count = 0;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let [start, end] = [start, end].map(|it| u64::from_str_radix(it, 16).expect("a place"));
        let mut bytes = vec![0; usize::try_from(end - start).expect("it is mapped")];
        // Some places cannot be read by anybody.
        if memory.read_exact_at(&mut bytes, start).is_ok() {
            let same = |it: &&[u8]| *it == words.as_bytes();
            count += bytes.windows(words.len()).filter(same).count();
        }
    }
    Some(count)
}

#[test]
fn what_a_run_was_given_is_not_in_what_makes_its_cell() {
    for hotcell in everyone() {
        // Put together, so that they are not in the test's own binary, which is no part of this.
        let [argument, variable] = ["argument", "variable"].map(|it| format!("{it}-of-{}", 7 * 11));
        let mut command = hotcell.command();
        let code = format!("echo up; exec sleep 600; : {argument}");
        command.args(["run", "-l", "sh", "-c", &code]);
        command.env("HOTCELL_TEST_SECRET", &variable);
        let mut running = Running::start(&mut command);
        running.stdout.until("up\n");
        let server = running.pid();
        let spawner = spawner(server).expect("its spawner");
        for words in [&argument, &variable] {
            let Some(control) = count_in_memory(server, words) else {
                skip("the memory of other processes cannot be read");
                continue;
            };
            assert!(control > 0, "{words}: hotcell itself has it");
            assert_eq!(count_in_memory(spawner, words), Some(0), "{words}");
        }
        running.signal(Signal::KILL);
        running.finish();
    }
}

#[test]
fn a_spawner_killed_while_it_starts_is_replaced_or_ends_the_run_with_a_reason() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut random = Random(0xfa17);
        for round in 0..30 {
            let marked = mark(&hotcell);
            let mut running = hotcell.start(&[&marked, "-l", "sh", "-c", "echo ran"]);
            let pid = running.pid();
            let mut found = None;
            assert!(eventually(PATIENCE, || {
                found = spawner(pid);
                found.is_some() || running.has_ended()
            }));
            thread::sleep(Duration::from_micros(random.below(10_000)));
            if let Some(found) = found {
                kill(found);
            }
            let answer = running.finish();
            let said = answer.err();
            if answer.code == Some(0) {
                assert_eq!(answer.out(), "ran\n", "round {round}");
            } else {
                assert_eq!(answer.code, Some(125), "round {round}: {said}");
                assert!(said.contains("\nhint: "), "round {round}: {said}");
            }
            before.expect_nothing_left(pid);
        }
    }
}

#[test]
fn a_control_group_that_will_not_go_holds_nobody_up() {
    for hotcell in everyone() {
        let mut running = hotcell.start_with_input(&["-l", "sh", "-c", "echo up; read word"]);
        let pid = running.pid();
        running.stdout.until("up\n");
        let held = groups(pid);
        if held.is_empty() {
            // No group was to be had, so none can stay; `doctor` says which it is.
            continue;
        }
        let guest = Guest::in_groups(&held);
        drop(running.stdin.take());
        // The guest would stay for 600 s; the sweeper ends it once hotcell is gone.
        let answer = running.finish();
        assert_eq!(answer.code, Some(1), "{}", answer.err());

        let next = hotcell.run(&["-l", "sh", "-c", "echo next"]);
        assert_eq!(next.whole(), (Some(0), "next\n".to_owned(), String::new()));
        drop(guest);
        let gone = eventually(PATIENCE, || groups(pid).is_empty());
        assert!(gone, "{:?}", groups(pid));
    }
}

/// A process of ours that sits in the control groups of a cell.
struct Guest(Child);

impl Guest {
    fn in_groups(groups: &[String]) -> Self {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep");
        let guest = Self(child);
        for group in groups {
            // Version 2 keeps the slot's group inside the server's.
            let slot = Path::new(group).join("0");
            let group = if slot.exists() { slot } else { group.into() };
            let joined = fs::write(group.join("cgroup.procs"), guest.0.id().to_string());
            joined.expect("we may move our own child");
        }
        guest
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Xorshift: the same moments in every run of the tests.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a pid is not 0");
    let _ = kill_process(pid, Signal::KILL);
}
