//! From rules to a BPF program: sorted ranges of numbers, then a balanced tree over them.
//!
//! The shape is the point. To lay a filter the kernel translates each instruction, and tries the
//! whole on every system call number. Some 250 in a row took 640 µs, as a tree 77, and as a tree
//! whose branches share their ends (then 133) 54. This module knows no system call by name.

use std::collections::BTreeMap;

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W,
    SECCOMP_RET_ALLOW, SECCOMP_RET_DATA, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, sock_filter,
};

use super::rule::{Check, Rule, Values, Verdict};

/// The architecture our numbers belong to, as `seccomp_data.arch` spells it (linux/audit.h).
#[cfg(target_arch = "x86_64")]
pub const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub const ARCH: u32 = 0xc000_00b7;

/// The program that decides each call as `rules` say, and calls they do not name as `unnamed`.
pub fn compile(rules: &[Rule], unnamed: Verdict) -> Vec<sock_filter> {
    let mut code = Backwards::default();
    let native = code.tree(&ranges(rules, unnamed));
    let native = code.load(NR, native);
    let foreign = code.verdict(Verdict::Kill);
    // SECURITY: before any number is looked at. `int 0x80` reaches the i386 table on ordinary
    // x86_64 kernels, where our numbers mean other calls and `socketcall` hides its family.
    let start = code.branch(BPF_JEQ, ARCH, native, foreign);
    code.load(ARCH_FIELD, start);
    code.finish()
}

/// Offsets in `struct seccomp_data`: nr, arch, instruction pointer (8 bytes), six arguments.
const NR: u32 = 0;
const ARCH_FIELD: u32 = 4;

/// Where the low half of argument `index` lies; both our architectures are little-endian.
const fn low_half(index: u32) -> u32 {
    16 + 8 * index
}

/// One verdict for all numbers from `start` to the next range's start.
struct Range {
    start: u32,
    verdict: Verdict,
}

/// The rules as ranges from 0 upwards; the last has no end, so every number is in exactly one.
fn ranges(rules: &[Rule], unnamed: Verdict) -> Vec<Range> {
    let named: BTreeMap<u32, Verdict> = rules
        .iter()
        .flat_map(|rule| rule.calls.iter().map(|&(_, nr)| (nr as u32, rule.verdict)))
        .collect();

    let mut ranges = Vec::new();
    let mut next = 0;
    for (nr, verdict) in named {
        if next < nr {
            extend(&mut ranges, next, unnamed);
        }
        extend(&mut ranges, nr, verdict);
        next = nr + 1;
    }
    extend(&mut ranges, next, unnamed);
    ranges
}

/// Opens a range at `start`, unless the one before says the same.
fn extend(ranges: &mut Vec<Range>, start: u32, verdict: Verdict) {
    if ranges.last().is_none_or(|last| last.verdict != verdict) {
        ranges.push(Range { start, verdict });
    }
}

/// A label in the program: a position, as the number of instructions from there to the end.
type Label = usize;

/// A program written from its last instruction to its first.
///
/// BPF only jumps forward, so whatever an instruction jumps to is already written: each method
/// takes the labels to go on to and gives the label to come in at.
#[derive(Default)]
struct Backwards {
    code: Vec<sock_filter>,
    /// Where verdicts already written begin, so that each is written once.
    verdicts: Vec<(Verdict, Label)>,
}

impl Backwards {
    /// Searches the ranges for the number in the accumulator.
    fn tree(&mut self, ranges: &[Range]) -> Label {
        if let [range] = ranges {
            return self.verdict(range.verdict);
        }
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let split_at = high[0].start;
        let high = self.tree(high);
        let low = self.tree(low);
        self.branch(BPF_JGE, split_at, high, low)
    }

    fn verdict(&mut self, verdict: Verdict) -> Label {
        if let Some(&(_, label)) = self.verdicts.iter().find(|(known, _)| *known == verdict) {
            return label;
        }
        let label = match verdict {
            Verdict::Allow => self.end(SECCOMP_RET_ALLOW),
            Verdict::Errno(errno) => {
                self.end(SECCOMP_RET_ERRNO | (errno as u32 & SECCOMP_RET_DATA))
            }
            Verdict::Kill => self.end(SECCOMP_RET_KILL_PROCESS),
            Verdict::When(checks) => {
                let allow = self.verdict(Verdict::Allow);
                checks
                    .iter()
                    .rev()
                    .fold(allow, |next, check| self.check(check, next))
            }
        };
        self.verdicts.push((verdict, label));
        label
    }

    /// Goes on to `holds`, or returns the check's errno.
    ///
    /// SECURITY: only the low 32 bits are compared, because they are all the kernel reads of these
    /// arguments. Comparing 64 would let `ioctl(fd, TIOCSTI | 1 << 32)` through (CVE-2019-10063).
    fn check(&mut self, check: &Check, holds: Label) -> Label {
        let refused = self.verdict(Verdict::Errno(check.errno));
        let (values, equal, different) = match check.values {
            Values::Only(values) => (values, holds, refused),
            Values::Never(values) => (values, refused, holds),
        };
        let compare = values.iter().rev().fold(different, |otherwise, &value| {
            self.branch(BPF_JEQ, value, equal, otherwise)
        });
        let masked = match check.mask {
            u32::MAX => compare,
            mask => self.then(BPF_ALU | BPF_AND | BPF_K, mask, compare),
        };
        self.load(low_half(check.arg), masked)
    }

    fn load(&mut self, offset: u32, next: Label) -> Label {
        self.then(BPF_LD | BPF_W | BPF_ABS, offset, next)
    }

    fn end(&mut self, value: u32) -> Label {
        self.push(BPF_RET | BPF_K, value, 0, 0)
    }

    /// Compares the accumulator with `value` and goes on at one label or the other.
    fn branch(&mut self, compare: u32, value: u32, if_true: Label, if_false: Label) -> Label {
        let if_true = self.within_reach(if_true);
        let if_false = self.within_reach(if_false);
        let [jt, jf] = [if_true, if_false].map(|label| {
            u8::try_from(self.code.len() - label).expect("both labels are within reach")
        });
        self.push(BPF_JMP | compare | BPF_K, value, jt, jf)
    }

    /// An instruction that goes on at `next`, with a jump to it if it does not lie right behind.
    fn then(&mut self, code: u32, k: u32, next: Label) -> Label {
        if next != self.code.len() {
            self.jump(next);
        }
        self.push(code, k, 0, 0)
    }

    /// `label`, or a jump to it: a branch spans 255 instructions, a plain jump any number.
    fn within_reach(&mut self, label: Label) -> Label {
        // One less, since the other side of the branch may need a jump in between.
        match self.code.len() - label {
            0..255 => label,
            _ => self.jump(label),
        }
    }

    fn jump(&mut self, label: Label) -> Label {
        self.push(BPF_JMP | BPF_JA, (self.code.len() - label) as u32, 0, 0)
    }

    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) -> Label {
        self.code.push(sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        });
        self.code.len()
    }

    fn finish(mut self) -> Vec<sock_filter> {
        self.code.reverse();
        self.code
    }
}
