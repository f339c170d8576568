//! The filter's table against the kernel: each row is called from a program in a real cell, and
//! the same calls are made by an ordinary process outside, which shows whose answer it was.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use jail::init::seccomp::rule::{Check, Rule, Values, Verdict};
use jail::init::seccomp::{Filter, rules};

/// A call of a row with checks: its name, arguments that pass, and arguments that do not.
type Sample = (&'static str, [u64; 3], &'static [[u64; 3]]);

/// One passing call for each row with checks, and one refused call for each check.
#[rustfmt::skip]
const SAMPLES: &[Sample] = &[
    ("SYS_clone", [17, 0, 0], &[[0x1000_0011, 0, 0], [0x91, 0, 0], [0x4000_0011, 0, 0]]),
    ("SYS_unshare", [0x400, 0, 0], &[[0x0002_0000, 0, 0], [0x1000_0000, 0, 0], [0x80, 0, 0]]),
    ("SYS_socket", [2, 1, 6], &[[40, 1, 0], [16, 3, 0], [2, 3, 1], [2, 2, 1], [2, 1, 262]]),
    ("SYS_socketpair", [1, 1, 0], &[[30, 1, 0], [1, 3, 0], [1, 1, 1]]),
    ("SYS_ioctl", [1, 0x5401, 0], &[[1, 0x5412, 0], [1, 0x5412 | 1 << 32, 0], [1, 0x541c, 0]]),
    ("SYS_personality", [0xffff_ffff, 0, 0], &[[0x0004_0000, 0, 0]]),
    ("SYS_prctl", [3, 0, 0], &[[35, 0, 0], [62, 0, 0]]),
    ("SYS_seccomp", [2, 0, 0], &[[1, 8, 0]]),
    ("SYS_prlimit64", [0, 7, 0], &[[1, 0, 0], [1 | 1 << 32, 7, 0]]),
    ("SYS_sched_setattr", [0, 0, 0], &[[1, 0, 0]]),
    ("SYS_sched_setparam", [0, 0, 0], &[[1, 0, 0]]),
    ("SYS_sched_setscheduler", [0, 0, 0], &[[1, 0, 0]]),
    ("SYS_sched_setaffinity", [0, 0, 0], &[[1, 0, 0]]),
    ("SYS_setpriority", [0, 0, 0], &[[0, 1, 0], [2, 0, 0], [2, 65534, 0]]),
    ("SYS_ioprio_set", [1, 0, 0x4004], &[[1, 1, 0], [3, 0, 0x4004]]),
    ("SYS_sendmsg", [1, 0, 0x40], &[[1, 0, 1], [1, 0, 0x4001]]),
    ("SYS_sendmmsg", [1, 0, 0x40], &[[1, 0, 1]]),
    ("SYS_sendto", [1, 0, 0x40], &[[1, 0, 1], [1, 0, 0x4001]]),
];

/// Calls that a kernel without our filter answers otherwise, even to an ordinary user: if one of
/// these comes out refused outside too, the test shows nothing.
#[rustfmt::skip]
const OURS: &[&str] = &[
    "SYS_clone3", "SYS_io_uring_setup", "SYS_io_setup", "SYS_kcmp", "SYS_keyctl", "SYS_add_key",
    "SYS_landlock_create_ruleset", "SYS_mbind", "SYS_name_to_handle_at", "SYS_perf_event_open",
    "SYS_pidfd_getfd", "SYS_process_vm_readv", "SYS_ptrace", "SYS_request_key", "SYS_setns",
];

/// Allowed calls whose answer differs in a cell for a reason that is not the filter.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("SYS_memfd_create", "allowed only where a cgroup charges it"),
    ("SYS_shmget", "allowed only where a cgroup charges it"),
    ("SYS_mlock", "the cell may lock no memory"),
    ("SYS_mlock2", "the cell may lock no memory"),
    ("SYS_msgget", "makes a queue, which would stay on the host"),
    ("SYS_pause", "waits for a signal"),
    ("SYS_vfork", "borrows the stack of the probe"),
];

#[test]
fn each_refused_call_is_refused_by_the_filter_and_not_by_the_kernel() {
    let mut probes = Vec::new();
    for rule in cell() {
        for &(name, nr) in rule.calls {
            match rule.verdict {
                Verdict::Errno(errno) => probes.push((name, Probe(nr, [0; 3]), errno)),
                Verdict::When(checks) => {
                    let refused = sample(name).2.iter();
                    probes.extend(
                        refused.map(|&args| (name, Probe(nr, args), refusal(checks, args))),
                    );
                }
                Verdict::Allow | Verdict::Kill => {}
            }
        }
    }
    let calls: Vec<_> = probes.iter().map(|(_, probe, _)| *probe).collect();
    let Some(inside) = in_a_cell(&calls) else {
        return;
    };
    for ((name, probe, errno), answer) in probes.iter().zip(&inside) {
        let expected = if *errno == 0 {
            "ok".to_owned()
        } else {
            errno.to_string()
        };
        assert_eq!(*answer, expected, "{name} with {:x?}", probe.1);
    }

    // Control: the calls that any process may make do not end like that outside.
    let of_anyone: Vec<_> = probes
        .iter()
        .filter(|(name, ..)| OURS.contains(name))
        .collect();
    assert_eq!(of_anyone.len(), OURS.len());
    let outside = outside(
        &of_anyone
            .iter()
            .map(|(_, probe, _)| *probe)
            .collect::<Vec<_>>(),
    );
    for ((name, _, errno), answer) in of_anyone.iter().zip(&outside) {
        // A kernel built without the call has nothing to show either way.
        if *answer != libc::ENOSYS.to_string() || *name == "SYS_clone3" {
            assert_ne!(
                *answer,
                errno.to_string(),
                "{name} is refused without our filter too"
            );
        }
    }
}

#[test]
fn each_check_lets_the_harmless_call_through() {
    for rule in cell() {
        let Verdict::When(checks) = rule.verdict else {
            continue;
        };
        for &(name, nr) in rule.calls {
            let (_, passing, refused) = sample(name);
            assert_eq!(refusal(checks, *passing), 0, "{name}");
            for check in checks {
                let covered = refused
                    .iter()
                    .any(|&args| first_failing(checks, args) == Some(check));
                assert!(covered, "no sample of {name} fails {check:?}");
            }
            let Some(inside) = in_a_cell(&[Probe(nr, *passing)]) else {
                return;
            };
            let errnos = checks.iter().map(|check| check.errno.to_string());
            assert!(
                !errnos.into_iter().any(|errno| errno == inside[0]),
                "{name}: {}",
                inside[0]
            );
        }
    }
}

#[test]
fn each_allowed_call_answers_in_a_cell_as_it_does_outside() {
    let compared = |name: &str| !NOT_COMPARED.iter().any(|(not, _)| *not == name);
    let calls: Vec<_> = cell()
        .iter()
        .filter(|rule| rule.verdict == Verdict::Allow)
        .flat_map(|rule| rule.calls)
        .filter(|(name, _)| compared(name))
        .collect();
    // All bits set is a wrong argument to nearly everything, so nearly nothing happens: what we
    // compare is how far the call gets.
    let probes: Vec<_> = calls
        .iter()
        .map(|(_, nr)| Probe(*nr, [u64::MAX; 3]))
        .collect();
    let Some(inside) = in_a_cell(&probes) else {
        return;
    };
    let outside = outside(&probes);
    for ((call, inside), outside) in calls.iter().zip(inside).zip(outside) {
        assert_eq!(
            inside, outside,
            "{}: left in the cell, right outside",
            call.0
        );
    }
}

/// A system call and its first three arguments; the other three are the third again.
#[derive(Clone, Copy)]
struct Probe(i64, [u64; 3]);

/// Makes each call in a process of its own and prints a line for it: `ok`, an errno, or how the
/// process ended.
const PROGRAM: &str = r#"
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def probe(nr, args):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(5)
        args = [ctypes.c_ulong(arg) for arg in args + args[2:] * 3]
        result = libc.syscall(ctypes.c_long(nr), *args)
        failed = result < 0 and result >= -1
        os.write(writer, b'%d' % ctypes.get_errno() if failed else b'ok')
        os._exit(0)
    os.close(writer)
    said = b''
    while (more := os.read(reader, 64)):
        said += more
    os.close(reader)
    status = os.waitpid(pid, 0)[1]
    # A process that made another (fork, clone) speaks twice.
    said = said.decode().removesuffix('ok') or said.decode()[:2]
    return said or 'ended %d' % status
for nr, args in PROBES:
    print(probe(nr, args), flush=True)
"#;

/// The answers from inside, or `None` after saying why there is no cell here.
fn in_a_cell(probes: &[Probe]) -> Option<Vec<String>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotcell"));
    command.args(["run", "--language", "python", "--timeout", "60s"]);
    let (status, answers) = answers(command, probes);
    if status == Some(125) {
        assert!(
            std::env::var_os("HOTCELL_NO_SKIP").is_none(),
            "a skip is a failure in CI"
        );
        println!("SKIP: this host cannot build a cell");
        return None;
    }
    assert_eq!(status, Some(0));
    Some(answers)
}

/// The answers an ordinary user gets without a cell.
fn outside(probes: &[Probe]) -> Vec<String> {
    let places = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let python = places
        .into_iter()
        .find(|place| Path::new(place).exists())
        .unwrap_or("python3");
    let mut command = Command::new(python);
    command.args(["-I", "-"]).current_dir("/");
    if rustix::process::getuid().is_root() {
        // SECURITY: never these calls as root.
        command.uid(65534).gid(65534);
    }
    let (status, answers) = answers(command, probes);
    assert_eq!(status, Some(0));
    answers
}

fn answers(mut command: Command, probes: &[Probe]) -> (Option<i32>, Vec<String>) {
    let list = probes
        .iter()
        .map(|Probe(nr, args)| format!("({nr}, {args:?}), "));
    let program = format!("PROBES = [{}]\n{PROGRAM}", list.collect::<String>());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe to it");
    stdin
        .write_all(program.as_bytes())
        .expect("it reads its source");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let lines: Vec<_> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    if output.status.success() {
        assert_eq!(lines.len(), probes.len(), "an answer for each call");
    }
    (output.status.code(), lines)
}

fn cell() -> Vec<Rule> {
    rules(Filter::Cell {
        grouped: true,
        writes_host: false,
    })
}

fn sample(name: &str) -> &'static Sample {
    let found = SAMPLES.iter().find(|(sampled, ..)| *sampled == name);
    found.unwrap_or_else(|| panic!("{name} has checks and no sample"))
}

/// The errno the table gives these arguments, 0 for none.
fn refusal(checks: &'static [Check], args: [u64; 3]) -> i32 {
    first_failing(checks, args).map_or(0, |check| check.errno)
}

fn first_failing(checks: &'static [Check], args: [u64; 3]) -> Option<&'static Check> {
    checks.iter().find(|check| {
        let seen = args[(check.arg as usize).min(2)] as u32 & check.mask;
        match check.values {
            Values::Only(values) => !values.contains(&seen),
            Values::Never(values) => values.contains(&seen),
        }
    })
}
