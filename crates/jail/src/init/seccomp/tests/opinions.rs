//! Two opinions on a filter: an interpreter of BPF, and what seccompiler makes of the same rules.

use std::collections::BTreeMap;

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_K, BPF_LD};
use libc::{BPF_RET, BPF_W, EPERM, sock_filter};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::init::seccomp::rule::{Check, Rule, Values, Verdict};

const LOAD: u32 = BPF_LD | BPF_W | BPF_ABS;
const AND: u32 = BPF_ALU | BPF_AND | BPF_K;
const JUMP: u32 = BPF_JMP | BPF_JA;
const EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
const GREATER: u32 = BPF_JMP | BPF_JGT | BPF_K;
const GREATER_OR_EQUAL: u32 = BPF_JMP | BPF_JGE | BPF_K;
const RETURN: u32 = BPF_RET | BPF_K;

/// Code, jump if true, jump if false, constant: ours and seccompiler's are different types.
pub type Instruction = (u16, u8, u8, u32);

pub fn native(program: &[sock_filter]) -> Vec<Instruction> {
    program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
}

/// Runs a filter as the kernel would; panics where the kernel would refuse to load it.
pub fn run(program: &[Instruction], arch: u32, nr: u32, args: [u64; 6]) -> u32 {
    let mut data = vec![nr, arch, 0, 0];
    data.extend(
        args.iter()
            .flat_map(|&arg| [arg as u32, (arg >> 32) as u32]),
    );
    let word = |offset: u32| {
        assert_eq!(offset % 4, 0, "an unaligned load");
        data[offset as usize / 4]
    };

    let (mut accumulator, mut next) = (0, 0);
    loop {
        let (code, if_true, if_false, k) = program[next];
        next += 1;
        let mut jump = |condition| next += usize::from(if condition { if_true } else { if_false });
        match u32::from(code) {
            LOAD => accumulator = word(k),
            AND => accumulator &= k,
            JUMP => next += k as usize,
            EQUAL => jump(accumulator == k),
            GREATER => jump(accumulator > k),
            GREATER_OR_EQUAL => jump(accumulator >= k),
            RETURN => return k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}

/// The same rules as seccompiler compiles them: a list of alternatives for each call.
pub fn oracle(rules: &[Rule]) -> Vec<Instruction> {
    let mut alternatives = BTreeMap::new();
    for rule in rules {
        let rules = match rule.verdict {
            Verdict::Allow => vec![],
            Verdict::When(checks) => combinations(checks)
                .into_iter()
                .map(|conditions| SeccompRule::new(conditions).expect("a rule"))
                .collect(),
            Verdict::Errno(_) | Verdict::Kill => continue,
        };
        alternatives.extend(rule.calls.iter().map(|&(_, nr)| (nr, rules.clone())));
    }
    let arch = std::env::consts::ARCH
        .try_into()
        .expect("an architecture seccompiler knows");
    let refuse = SeccompAction::Errno(EPERM as u32);
    let filter = SeccompFilter::new(alternatives, refuse, SeccompAction::Allow, arch);
    let program = BpfProgram::try_from(filter.expect("a filter")).expect("a program");
    program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
}

/// Every way to satisfy all checks, as conditions of which all must hold.
fn combinations(checks: &[Check]) -> Vec<Vec<SeccompCondition>> {
    let condition = |check: &Check, operator, value: u32| {
        let arg = check.arg as u8;
        SeccompCondition::new(arg, SeccompCmpArgLen::Dword, operator, value.into()).unwrap()
    };
    checks
        .iter()
        .fold(vec![vec![]], |ways, check| match check.values {
            Values::Only(values) => {
                let masked = || SeccompCmpOp::MaskedEq(check.mask.into());
                let one_more =
                    |way: &Vec<_>, value| [&way[..], &[condition(check, masked(), value)]].concat();
                ways.iter()
                    .flat_map(|way| values.iter().map(move |&value| one_more(way, value)))
                    .collect()
            }
            Values::Never(values) => {
                assert_eq!(check.mask, u32::MAX, "seccompiler has no masked inequality");
                let none = values
                    .iter()
                    .map(|&value| condition(check, SeccompCmpOp::Ne, value));
                let none: Vec<_> = none.collect();
                ways.iter().map(|way| [&way[..], &none].concat()).collect()
            }
        })
}
