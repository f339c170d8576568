//! How a run ends: each limit with a program that meets it and one that does not, and
//! every ending told apart from the others. What was printed until then comes back.

use serde_json::{Value, json};

use crate::support::left::{Before, groups, mark};
use crate::support::{Hotcell, every_provider, everyone};

/// Says something, then takes 100 MiB and keeps it for a while: where no group counts, a
/// watcher looks now and then.
const HUNGRY: &str =
    "import time\nprint('partial')\nheld = b'x' * (100 << 20)\ntime.sleep(1)\nprint('had it')";
/// Says something, then has 20 children at once.
const FERTILE: &str = "import os, time
print('partial')
for _ in range(20):
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
print('had them')";

#[test]
fn a_cell_is_the_first_to_go_when_the_host_runs_out_of_memory() {
    let code = "print(open('/proc/self/oom_score_adj').read().strip())";
    for hotcell in everyone() {
        let answer = hotcell.run(&["-l", "python", "-c", code]);
        assert_eq!(answer.out(), "500\n", "{}: {}", hotcell.name, answer.err());
        let own = std::fs::read_to_string("/proc/self/oom_score_adj").expect("our own");
        assert_ne!(own.trim(), "500", "the control");
        let mut server = hotcell.command();
        server.arg("serve");
        let mut client = crate::mcp::client::Client::of(server);
        client.begin();
        // The second may have waited, the first hardly.
        for _ in 0..2 {
            let result = client.run(json!({ "language": "python", "code": code }));
            assert_eq!(result["structuredContent"]["stdout"], "500\n", "{result}");
        }
    }
}

#[test]
fn a_program_cannot_limit_the_cell_s_own_pid_1() {
    let code = "import resource
for pid in 0, 1:
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, (5, 5))
        print(pid, 'limited')
    except OSError as error:
        print(pid, type(error).__name__)";
    for hotcell in everyone() {
        let answer = hotcell.run(&["-l", "python", "-c", code]);
        // Its own is the control.
        let expected = "0 limited\n1 PermissionError\n";
        assert_eq!(answer.out(), expected, "{}: {}", hotcell.name, answer.err());
    }
}

#[test]
fn a_program_is_ended_at_its_time_limit_with_all_that_it_started() {
    let code = "import os\nprint('partial')\nos.fork()\nos.fork()\nwhile True: pass";
    for hotcell in every_provider() {
        let before = Before::look(&hotcell);
        let marked = mark(&hotcell);
        let running = hotcell.start(&["--timeout", "1s", &marked, "-l", "python", "-c", code]);
        let pid = running.pid();
        let answer = running.finish();
        let told = "hotcell: the program was ended at its time limit of 1 s\n\
                    hint: Raise the limit with `--timeout`.\n";
        assert_eq!(
            answer.whole(),
            (Some(124), "partial\n".to_owned(), told.to_owned())
        );
        before.expect_nothing_left(pid);

        // Control: within its time the same limit does nothing.
        let answer = hotcell.run(&["--timeout", "20s", "-l", "python", "-c", "print('in time')"]);
        assert_eq!(
            (answer.code, answer.out()),
            (Some(0), "in time\n".to_owned())
        );
    }
}

#[test]
fn what_was_used_until_the_time_limit_is_told() {
    let code = "import os\nif os.fork() == 0:\n    while True: pass\nwhile True: pass";
    for hotcell in everyone() {
        let busy = hotcell.json(&["--timeout", "2s", "-l", "python", "-c", code]);
        assert_eq!(busy["status"], "timeout", "{busy}");
        let used = busy["usage"]["cpu_ms"].as_f64().expect("its time");
        assert!(
            (200.0..10_000.0).contains(&used),
            "{}: {used}",
            hotcell.name
        );
        // Control: one that sleeps has used little.
        let code = "import time; time.sleep(60)";
        let idle = hotcell.json(&["--timeout", "2s", "-l", "python", "-c", code]);
        let idle = idle["usage"]["cpu_ms"].as_f64().expect("its time");
        assert!(idle < used, "{}: {idle} {used}", hotcell.name);
    }
}

#[test]
fn the_time_limit_is_30_seconds_unless_another_is_asked_for() {
    for hotcell in everyone() {
        let plan = hotcell
            .run(&["--plan", "-l", "python", "-c", "while True: pass"])
            .json();
        assert_eq!(plan["timeout_ms"], 30_000);
    }
}

#[test]
fn a_program_is_ended_at_its_memory_limit() {
    for hotcell in everyone() {
        let answer = hotcell.run(&["--memory", "64m", "-l", "python", "-c", HUNGRY]);
        let told = "hotcell: the program was ended at its memory limit of 64 MiB\n\
                    hint: Raise the limit with `--memory`.\n";
        assert_eq!(
            (answer.code, answer.out()),
            (Some(122), "partial\n".to_owned())
        );
        assert!(answer.err().ends_with(told), "{}", answer.err());

        let answer = hotcell.run(&["--memory", "256m", "-l", "python", "-c", HUNGRY]);
        let whole = "partial\nhad it\n".to_owned();
        assert_eq!(answer.whole(), (Some(0), whole, String::new()));
    }
}

#[test]
fn what_one_sandbox_takes_of_its_user_s_quotas_leaves_the_others_theirs() {
    // Inotify instances, and descriptors that are on their way to nobody.
    let greedy = "import array, ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
instances = 0
while instances < 1000 and libc.inotify_init() >= 0: instances += 1
zero = os.open('/dev/zero', os.O_RDONLY)
flying, ends = 0, []
try:
    while flying < 5000:
        ends.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        for _ in range(2):
            ends[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [zero] * 250))])
            flying += 250
except OSError: pass
print(instances, flying >= 1000, flush=True)
time.sleep(600)";
    let modest = "import ctypes\nprint(ctypes.CDLL(None).inotify_init() >= 0)";
    for hotcell in everyone() {
        let mut all = Vec::new();
        for at in 0..3 {
            let mut running = hotcell.start(&["-l", "python", "-c", greedy]);
            let said = running.stdout.until("\n");
            // Control: it has taken what it could. The kernel counts what is on its way by user, so the first has taken all of that.
            let expected = if at == 0 { "8 True\n" } else { "8 " };
            assert!(said.starts_with(expected), "{}: {said}", hotcell.name);
            all.push(running);
        }
        let answer = hotcell.run(&["-l", "python", "-c", modest]);
        assert_eq!(answer.out(), "True\n", "{}: {}", hotcell.name, answer.err());
    }
}

#[test]
fn page_tables_count_as_memory() {
    // Reads one page of every two megabytes: hardly a page is its own, but each needs a page of page tables.
    let code = "import mmap, sys, time
print('partial', flush=True)
size = int(sys.argv[1]) << 30
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | 0x4000 | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
held.madvise(15)
for at in range(0, size, 2 << 20): held[at]
time.sleep(2)
print('had it')";
    for hotcell in everyone() {
        let run = |gibibytes| {
            let asked = [
                "--memory", "64m", "-l", "python", "-c", code, "--", gibibytes,
            ];
            ending(&hotcell.json(&asked))
        };
        let large = run("96");
        assert_eq!(
            large,
            json!(["memory", "memory", "partial\n"]),
            "{}",
            hotcell.name
        );
        // Control: with few of them it is fine.
        let small = run("1");
        assert_eq!(
            small,
            json!(["ok", null, "partial\nhad it\n"]),
            "{}",
            hotcell.name
        );
    }
}

#[test]
fn files_in_memory_count_as_memory() {
    let code = "import os\nprint('partial')
for at in ['/workspace/a', '/tmp/a', '/dev/shm/a']:
    with open(at, 'wb') as file:
        for _ in range(20): file.write(bytes(1 << 20))
held = b'x' * (40 << 20)
import time; time.sleep(1)\nprint('had it')";
    for hotcell in everyone() {
        let small = hotcell.json(&["--memory", "96m", "-l", "python", "-c", code]);
        assert_eq!(
            ending(&small),
            json!(["memory", "memory", "partial\n"]),
            "{small}"
        );
        let large = hotcell.json(&["--memory", "256m", "-l", "python", "-c", code]);
        assert_eq!(
            ending(&large),
            json!(["ok", null, "partial\nhad it\n"]),
            "{large}"
        );
    }
}

#[test]
fn a_program_at_its_process_limit_keeps_its_own_exit_code() {
    for hotcell in everyone() {
        let asked = ["--pids", "8", "-l", "python", "-c", FERTILE];
        let answer = hotcell.run(&asked);
        assert_eq!(
            (answer.code, answer.out()),
            (Some(1), "partial\n".to_owned())
        );
        let told = "hotcell: the program failed with exit code 1 after it had reached its limit of 8 processes\n\
                    hint: Raise the limit with `--pids`, or start fewer processes and threads.\n";
        assert!(answer.err().ends_with(told), "{}", answer.err());
        let result = hotcell.json(&asked);
        assert_eq!(ending(&result), json!(["failed", "processes", "partial\n"]));

        let result = hotcell.json(&["--pids", "40", "-l", "python", "-c", FERTILE]);
        assert_eq!(
            ending(&result),
            json!(["ok", null, "partial\nhad them\n"]),
            "{result}"
        );
        // One that fails for another reason is not told so.
        let result = hotcell.json(&["--pids", "8", "-l", "sh", "-c", "exit 1"]);
        assert_eq!(ending(&result), json!(["failed", "exception", ""]));
    }
}

#[test]
fn a_share_of_a_processor_slows_a_program_down() {
    for hotcell in everyone() {
        if !has_groups(&hotcell) {
            // Nothing but a group can do that; the report says that there is none.
            continue;
        }
        // Needs 0.4 s of a processor and says how long that took.
        let code = "import time\nstart = time.monotonic()\n\
                    while time.process_time() < 0.4: pass\nprint(time.monotonic() - start)";
        let answer = hotcell.run(&["--cpus", "0.2", "-l", "python", "-c", code]);
        let slow: f64 = answer.out().trim().parse().expect("seconds");
        assert!(slow > 1.2, "0.4 s of a fifth of a processor took {slow} s");
        // Control: that was the limit and not a busy machine, because with another one the kernel is told another one.
        assert_eq!(quota(&hotcell, "0.2"), "20000");
        assert_eq!(quota(&hotcell, "1"), "100000");
    }
}

/// Everything that a program may learn the number of its processors from.
/// `nproc` answers with the threads that OMP_NUM_THREADS allows, if that is set, so it is asked without.
pub const COUNT_PROCESSORS: &str = "import os, re, subprocess
lines = lambda path, start: sum(bool(re.match(start, line)) for line in open(path))
mask = open('/proc/self/status').read().split('Cpus_allowed:')[1].split()[0]
node = 'const os = require(\"os\"); console.log(os.cpus().length, os.availableParallelism?.() ?? os.cpus().length)'
say = lambda *command: subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
counts = [os.cpu_count(), os.sysconf('SC_NPROCESSORS_CONF'), len(os.sched_getaffinity(0)),
    bin(int(mask.replace(',', ''), 16)).count('1'),
    lines('/proc/cpuinfo', 'processor\\s'), lines('/proc/stat', 'cpu[0-9]'), *say('env', '-u', 'OMP_NUM_THREADS', 'nproc')]
if os.path.exists('/usr/bin/node'): counts += say('/usr/bin/node', '-e', node)
print(*sorted({int(count) for count in counts}))";

#[test]
fn whoever_counts_processors_comes_to_one_number() {
    for hotcell in everyone() {
        for cpus in ["0.5", "1", "1.5", "64"] {
            let answer = hotcell.run(&["--cpus", cpus, "-l", "python", "-c", COUNT_PROCESSORS]);
            let counts: Vec<u32> = answer
                .out()
                .split_whitespace()
                .map(|count| count.parse().expect("a number"))
                .collect();
            assert!(
                matches!(counts[..], [count] if count > 0),
                "{counts:?} with --cpus {cpus} as {}",
                hotcell.name
            );
        }
    }
}

/// What the kernel was told of a cell's share, in microseconds of each tenth of a second.
fn quota(hotcell: &Hotcell, cpus: &str) -> String {
    let arguments = ["--cpus", cpus, "-l", "sh", "-c", "echo up; read line"];
    let mut running = hotcell.start_with_input(&arguments);
    running.stdout.until("up");
    let files = ["cpu.max", "cpu.cfs_quota_us"];
    let cell = |group: &String| group.ends_with(".0");
    let groups = groups(running.pid()).into_iter().filter(cell);
    let told = groups
        .flat_map(|group| files.map(|file| format!("{group}/{file}")))
        .find_map(|file| std::fs::read_to_string(file).ok())
        .expect("a group");
    running.finish_with(b"\n");
    told.split_whitespace().next().expect("a number").to_owned()
}

#[test]
fn a_program_that_prints_too_much_is_ended() {
    let code = "for n in range(10000): print('partial')";
    for hotcell in every_provider() {
        let answer = hotcell.run(&["--output-limit", "4k", "-l", "python", "-c", code]);
        let told = "hotcell: the program was ended because it printed more than 4 KiB\n\
                    hint: Raise the limit with `--output-limit`, or print less.\n";
        assert_eq!((answer.code, answer.err()), (Some(123), told.to_owned()));
        assert!(answer.stdout.len() > 4096 && answer.out().starts_with("partial\npartial\n"));

        // Also if it has ended before anybody has read that.
        let at_once = "import os; os._exit(os.write(1, b'x' * 5000) - 5000)";
        let answer = hotcell.run(&["--output-limit", "4k", "-l", "python", "-c", at_once]);
        assert_eq!((answer.code, answer.err()), (Some(123), told.to_owned()));

        let answer = hotcell.run(&["--output-limit", "1m", "-l", "python", "-c", code]);
        assert_eq!((answer.code, answer.stdout.len()), (Some(0), 80_000));
    }
}

#[test]
fn every_ending_has_a_status_a_kind_and_an_exit_code_of_its_own() {
    let say = "import os, sys, time; print('partial', flush=True)";
    let endings = [
        ("sys.exit(0)", &[][..], 0, json!(["ok", null, 0, null])),
        (
            "sys.exit(41)",
            &[],
            41,
            json!(["failed", "exception", 41, null]),
        ),
        ("1/0", &[], 1, json!(["failed", "exception", 1, null])),
        (
            "os.kill(os.getpid(), 11)",
            &[],
            139,
            json!(["killed", "signal", null, "SIGSEGV"]),
        ),
        (
            "os.kill(os.getpid(), 9)",
            &[],
            137,
            json!(["killed", "signal", null, "SIGKILL"]),
        ),
        (
            "os.abort()",
            &[],
            134,
            json!(["killed", "signal", null, "SIGABRT"]),
        ),
        // It cannot pretend to be one of ours.
        (
            "sys.exit(124)",
            &[],
            124,
            json!(["failed", "exception", 124, null]),
        ),
        (
            "time.sleep(60)",
            &["--timeout", "300ms"],
            124,
            json!(["timeout", "timeout", null, null]),
        ),
        (
            "x = 'x' * (1 << 30)",
            &["--memory", "64m"],
            122,
            json!(["memory", "memory", null, null]),
        ),
        (
            "print('x' * 99999)",
            &["--output-limit", "9k"],
            123,
            json!(["killed", "output", null, null]),
        ),
    ];
    for hotcell in everyone() {
        for (code, options, exit_code, expected) in &endings {
            let code = format!("{say}\n{code}");
            let arguments = [&["--json", "-l", "python", "-c", &code], *options].concat();
            let answer = hotcell.run(&arguments);
            let result = answer.json();
            let (status, kind) = (&result["status"], &result["error"]["kind"]);
            let facts = json!([status, kind, result["exit_code"], result["signal"]]);
            assert_eq!(
                (answer.code, facts),
                (Some(*exit_code), expected.clone()),
                "{code}"
            );
            let printed = result["stdout"].as_str().unwrap();
            assert!(printed.starts_with("partial\n"), "{code}: {printed}");
        }
    }
}

fn ending(result: &Value) -> Value {
    json!([result["status"], result["error"]["kind"], result["stdout"]])
}

fn has_groups(hotcell: &Hotcell) -> bool {
    let result = hotcell.json(&["-l", "sh", "-c", "true"]);
    let walls = result["isolation"]["walls"].as_array().expect("walls");
    walls
        .iter()
        .any(|wall| wall["name"] == "control groups" && wall["stands"] == true)
}
