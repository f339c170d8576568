//! The filters, run in an interpreter of BPF: against the table they come from, against what
//! seccompiler makes of the same rules, and against facts written down by hand.

use std::collections::BTreeSet;

use libc::{EAFNOSUPPORT, ENOSYS, EPERM};

use super::bpf::{self, ARCH};
use super::rule::{Call, Check, Rule, Values, Verdict};
use super::table::CLONE_NEW;
use super::{Filter, hash, numbers, program, rules, unnamed};

mod opinions;

use opinions::{native, oracle, run};

const CELL: Filter = cell(true, false);
const FILTERS: [Filter; 4] = [CELL, cell(false, false), cell(true, true), Filter::Init];
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const X32: u32 = 0x4000_0000;
/// The newest call the table knows; a newer one goes into a row before it comes here.
const NEWEST: i64 = numbers::SYS_listns;

const fn cell(grouped: bool, writes_host: bool) -> Filter {
    Filter::Cell {
        grouped,
        writes_host,
    }
}

#[test]
fn every_number_gets_exactly_the_verdict_of_its_row() {
    for filter in FILTERS {
        let (program, rules) = (native(&program(filter)), rules(filter));
        for nr in numbers_to_try() {
            for args in arguments_to_try(&rules, nr) {
                let verdict = run(&program, ARCH, nr, args);
                let expected = expected(&rules, unnamed(filter), nr, args);
                assert_eq!(verdict, expected, "{filter:?}, call {nr} with {args:x?}");
            }
        }
    }
}

#[test]
fn what_is_allowed_is_what_seccompiler_would_allow() {
    for filter in FILTERS {
        let (program, rules) = (native(&program(filter)), rules(filter));
        let oracle = oracle(&rules);
        for nr in numbers_to_try() {
            for args in arguments_to_try(&rules, nr) {
                let allowed = run(&program, ARCH, nr, args) == ALLOW;
                let oracle_allows = run(&oracle, ARCH, nr, args) == ALLOW;
                assert_eq!(
                    allowed, oracle_allows,
                    "{filter:?}, call {nr} with {args:x?}"
                );
            }
        }
    }
}

#[test]
fn a_foreign_architecture_is_killed_whatever_it_calls() {
    // i386, x86_64, arm, aarch64, and two that are none.
    let all = [
        0x4000_0003,
        0xc000_003e,
        0x4000_0028,
        0xc000_00b7,
        0,
        u32::MAX,
    ];
    for filter in FILTERS {
        let program = native(&program(filter));
        for arch in all.into_iter().filter(|&arch| arch != ARCH) {
            for nr in numbers_to_try() {
                assert_eq!(
                    run(&program, arch, nr, [0; 6]),
                    KILL,
                    "{filter:?}, {arch:x}, {nr}"
                );
            }
        }
    }
}

#[test]
fn no_number_with_the_x32_bit_exists_in_a_cell() {
    let program = native(&program(CELL));
    for nr in 0..=600 {
        assert_eq!(run(&program, ARCH, X32 | nr, [0; 6]), errno(ENOSYS), "{nr}");
    }
}

#[test]
fn every_number_of_the_architecture_is_in_exactly_one_row() {
    // Numbers that the architecture's list leaves free.
    #[cfg(target_arch = "x86_64")]
    let free = |nr| (336..424).contains(&nr);
    #[cfg(target_arch = "aarch64")]
    let free = |nr| (244..260).contains(&nr) || (295..424).contains(&nr);

    for filter in [CELL, cell(false, false), cell(true, true)] {
        let mut named: Vec<_> = calls(&rules(filter)).map(|(_, nr)| nr).collect();
        named.sort_unstable();
        let all: Vec<_> = (0..=NEWEST).filter(|&nr| !free(nr)).collect();
        assert_eq!(named, all);
    }
    let init: Vec<_> = calls(&rules(Filter::Init)).collect();
    assert_eq!(init.iter().collect::<BTreeSet<_>>().len(), init.len());
}

#[test]
fn pid_1_may_do_nothing_that_a_program_may_not() {
    let (cell, init) = (native(&program(CELL)), native(&program(Filter::Init)));
    for nr in numbers_to_try() {
        let wider = run(&init, ARCH, nr, [0; 6]) == ALLOW && run(&cell, ARCH, nr, [0; 6]) != ALLOW;
        assert!(!wider, "call {nr}");
    }
}

#[test]
fn each_check_passes_for_one_call_and_refuses_another_whatever_the_upper_half() {
    for filter in FILTERS {
        let (program, rules) = (native(&program(filter)), rules(filter));
        for rule in rules {
            let Verdict::When(checks) = rule.verdict else {
                continue;
            };
            let good = checks
                .iter()
                .fold([0; 6], |args, check| with(args, check, passing(check)));
            for &(name, nr) in rule.calls {
                for upper in [0, 1 << 32, u64::MAX << 32] {
                    let allowed = good.map(|arg| arg | upper);
                    assert_eq!(run(&program, ARCH, nr as u32, allowed), ALLOW, "{name}");
                    for check in checks {
                        let refused = with(allowed, check, failing(check) | upper);
                        let verdict = run(&program, ARCH, nr as u32, refused);
                        assert_eq!(verdict, errno(check.errno), "{name}({refused:x?})");
                    }
                }
            }
        }
    }
}

/// The promises in numbers and constants that do not come from the table's own rows.
#[test]
fn the_promised_calls_come_out_as_promised() {
    let high = 1 << 32;
    let inet = libc::AF_INET as u64;
    let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    let threads = 0x003d_0f00; // What pthread_create passes.
    let cases: &[(i64, [u64; 3], u32)] = &[
        (numbers::SYS_clone, [threads, 0, 0], ALLOW),
        (numbers::SYS_clone, [17, 0, 0], ALLOW),
        (numbers::SYS_clone, [0x1000_0000 | 17, 0, 0], errno(EPERM)),
        (numbers::SYS_clone, [0x80 | 17, 0, 0], errno(EPERM)),
        (numbers::SYS_clone3, [0, 0, 0], errno(ENOSYS)),
        (
            numbers::SYS_unshare,
            [libc::CLONE_FILES as u64, 0, 0],
            ALLOW,
        ),
        (numbers::SYS_unshare, [0x0002_0000, 0, 0], errno(EPERM)),
        (numbers::SYS_setns, [3, 0, 0], errno(EPERM)),
        (numbers::SYS_socket, [inet, 1 | flags, 6], ALLOW),
        (numbers::SYS_socket, [libc::AF_UNIX as u64, 5, 0], ALLOW),
        (numbers::SYS_socketpair, [libc::AF_UNIX as u64, 1, 0], ALLOW),
        (numbers::SYS_socket, [40, 1, 0], errno(EAFNOSUPPORT)), // AF_VSOCK
        (numbers::SYS_socket, [40 | high, 1, 0], errno(EAFNOSUPPORT)),
        (numbers::SYS_socket, [16, 3, 0], errno(EAFNOSUPPORT)), // netlink
        (numbers::SYS_socket, [0, 1, 0], errno(EAFNOSUPPORT)),
        (numbers::SYS_socket, [inet, 3 | flags, 1], errno(EPERM)), // raw ICMP
        (numbers::SYS_socket, [inet, 10, 0], errno(EPERM)),        // SOCK_PACKET
        (numbers::SYS_socket, [inet, 2, 1], errno(EPERM)),         // ping
        (numbers::SYS_socket, [inet, 1, 262], errno(EPERM)),       // MPTCP
        (numbers::SYS_ioctl, [0, 0x5401, 0], ALLOW),               // TCGETS
        (numbers::SYS_ioctl, [0, 0x5412, 0], errno(EPERM)),
        (numbers::SYS_ioctl, [0, 0x5412 | high, 0], errno(EPERM)),
        (numbers::SYS_ioctl, [0, 0x541c | high, 0], errno(EPERM)),
        (numbers::SYS_ioctl, [0, 0x541d, 0], errno(EPERM)),
        (numbers::SYS_ioctl, [0, 0x5423, 0], errno(EPERM)),
        (numbers::SYS_personality, [0xffff_ffff, 0, 0], ALLOW),
        (numbers::SYS_personality, [0x0040_0000, 0, 0], errno(EPERM)),
        (numbers::SYS_prctl, [15, 0, 0], ALLOW), // PR_SET_NAME
        (numbers::SYS_prctl, [35 | high, 0, 0], errno(EPERM)),
        (numbers::SYS_seccomp, [1, 0, 0], ALLOW),
        (numbers::SYS_seccomp, [1, 8 | 1, 0], errno(EPERM)),
        (numbers::SYS_prlimit64, [0, 0, 0], ALLOW),
        (numbers::SYS_prlimit64, [2, 0, 0], ALLOW),
        (numbers::SYS_prlimit64, [1 | high, 0, 0], errno(EPERM)),
        (numbers::SYS_setpriority, [0, 1, 5], errno(EPERM)),
        (numbers::SYS_setpriority, [1, 0, 5], ALLOW),
        (numbers::SYS_setpriority, [2, 65534, 5], errno(EPERM)),
        (numbers::SYS_setpriority, [2 | high, 0, 5], errno(EPERM)),
        (numbers::SYS_ioprio_set, [2, 0, 0], ALLOW),
        (numbers::SYS_ioprio_set, [3, 65534, 0], errno(EPERM)),
        (numbers::SYS_io_uring_setup, [8, 0, 0], errno(ENOSYS)),
        (numbers::SYS_landlock_restrict_self, [3, 0, 0], errno(EPERM)),
        (numbers::SYS_ptrace, [0, 0, 0], errno(EPERM)),
        (numbers::SYS_keyctl, [0, 0, 0], errno(EPERM)),
        (numbers::SYS_memfd_create, [0, 0, 0], ALLOW),
        (numbers::SYS_sync, [0, 0, 0], errno(0)),
        (NEWEST + 1, [0, 0, 0], errno(ENOSYS)),
    ];
    let program = native(&program(CELL));
    for &(nr, [a, b, c], expected) in cases {
        let verdict = run(&program, ARCH, nr as u32, [a, b, c, 0, 0, 0]);
        assert_eq!(verdict, expected, "call {nr} with {:x?}", [a, b, c]);
    }
    assert_eq!(CLONE_NEW, 0x7e02_0080);

    let uncharged = native(&super::program(cell(false, false)));
    for nr in [libc::SYS_memfd_create, libc::SYS_shmget] {
        assert_eq!(run(&program, ARCH, nr as u32, [0; 6]), ALLOW);
        assert_eq!(run(&uncharged, ARCH, nr as u32, [0; 6]), errno(ENOSYS));
    }
    let writing = native(&super::program(cell(true, true)));
    for (nr, args) in [
        (numbers::SYS_fchmod, [3, 0o4755, 0, 0]),
        (numbers::SYS_fchmodat, [3, 0, 0o2755, 0]),
        (numbers::SYS_fchmodat2, [3, 0, 0o6755, 0]),
        (numbers::SYS_mknodat, [3, 0, 0o104755, 0]),
        (numbers::SYS_openat, [3, 0, libc::O_CREAT as u64, 0o4755]),
    ] {
        let [a, b, c, d] = args;
        let call = |program| run(program, ARCH, nr as u32, [a, b, c, d, 0, 0]);
        assert_eq!((call(&program), call(&writing)), (ALLOW, errno(EPERM)));
        // Control: without the bits.
        let [a, b, c, d] = args.map(|arg| arg & !0o6000);
        let plain = run(&writing, ARCH, nr as u32, [a, b, c, d, 0, 0]);
        assert_eq!(plain, ALLOW, "call {nr}");
    }
}

#[test]
fn the_programs_stay_small() {
    for filter in FILTERS {
        let program = program(filter);
        println!(
            "{filter:?}: {} instructions, {}",
            program.len(),
            hash(&program)
        );
        assert!(program.len() < 400);
    }
}

#[test]
fn a_tree_too_wide_for_short_jumps_still_finds_every_leaf() {
    let even: Vec<Call> = (0..2000).map(|half| ("even", 2 * half)).collect();
    let rules = [Rule {
        calls: even.leak(),
        verdict: Verdict::Allow,
    }];
    let program = native(&bpf::compile(&rules, Verdict::Errno(EPERM)));
    assert!(program.len() > 4000);
    for nr in 0..4100 {
        let expected = if nr % 2 == 0 && nr < 4000 {
            ALLOW
        } else {
            errno(EPERM)
        };
        assert_eq!(run(&program, ARCH, nr, [0; 6]), expected, "{nr}");
    }
}

#[test]
fn the_hash_is_fnv_1a_and_tells_the_filters_apart() {
    assert_eq!(hash(&[]), "cbf29ce484222325");
    let hashes: BTreeSet<_> = FILTERS.map(|filter| hash(&program(filter))).into();
    assert_eq!(hashes.len(), FILTERS.len());
    assert_eq!(hash(&program(CELL)), hash(&program(CELL)));
}

/// All small numbers, the same with the x32 bit, the edges, and some from everywhere.
fn numbers_to_try() -> Vec<u32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let random = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u32
    });
    let edges = [X32 - 1, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX];
    (0..=600)
        .chain((0..=600).map(|nr| X32 | nr))
        .chain(edges)
        .chain(random.take(1000))
        .collect()
}

/// Zeroes, and for a call with checks every combination of what is near their values.
fn arguments_to_try(rules: &[Rule], nr: u32) -> Vec<[u64; 6]> {
    let mut all = vec![[0; 6]];
    if let Some(Verdict::When(checks)) = verdict_of(rules, nr) {
        for check in checks {
            let (Values::Only(values) | Values::Never(values)) = check.values;
            let near = values.iter().flat_map(|&value| {
                [
                    value,
                    value.wrapping_add(1),
                    value | 1 << 31,
                    value | check.mask,
                    !value,
                ]
            });
            let near: Vec<u64> = near
                .flat_map(|v| [v.into(), u64::from(v) | 1 << 32])
                .collect();
            all = all
                .iter()
                .flat_map(|&args| near.iter().map(move |&value| with(args, check, value)))
                .collect();
        }
    }
    all
}

/// What the table says, read the long way.
fn expected(rules: &[Rule], unnamed: Verdict, nr: u32, args: [u64; 6]) -> u32 {
    match verdict_of(rules, nr).unwrap_or(unnamed) {
        Verdict::Allow => ALLOW,
        Verdict::Errno(number) => errno(number),
        Verdict::Kill => KILL,
        Verdict::When(checks) => checks
            .iter()
            .find(|check| !holds(check, args[check.arg as usize]))
            .map_or(ALLOW, |check| errno(check.errno)),
    }
}

fn verdict_of(rules: &[Rule], nr: u32) -> Option<Verdict> {
    let named = |rule: &&Rule| {
        rule.calls
            .iter()
            .any(|&(_, number)| number == i64::from(nr))
    };
    rules.iter().find(named).map(|rule| rule.verdict)
}

fn holds(check: &Check, arg: u64) -> bool {
    let seen = arg as u32 & check.mask;
    match check.values {
        Values::Only(values) => values.contains(&seen),
        Values::Never(values) => !values.contains(&seen),
    }
}

fn passing(check: &Check) -> u64 {
    match check.values {
        Values::Only(values) => values[0].into(),
        Values::Never(_) => 0,
    }
}

fn failing(check: &Check) -> u64 {
    let one_bit = (0..32)
        .map(|bit| 1 << bit)
        .find(|&value| !holds(check, value));
    match check.values {
        Values::Only(_) => one_bit.expect("a check that refuses some bit"),
        Values::Never(values) => values[0].into(),
    }
}

fn with(mut args: [u64; 6], check: &Check, value: u64) -> [u64; 6] {
    args[check.arg as usize] = value;
    args
}

fn calls(rules: &[Rule]) -> impl Iterator<Item = Call> {
    rules.iter().flat_map(|rule| rule.calls).copied()
}

fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}
