//! What the rows of the table are made of.

use libc::{c_int, c_long};

/// A system call: its name, and its number on this architecture.
pub type Call = (&'static str, c_long);

/// Calls that come to the same thing for the same reason.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub calls: &'static [Call],
    pub verdict: Verdict,
}

/// What a call comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Fails with this errno and never reaches the kernel's code; 0 is a success without effect.
    Errno(c_int),
    /// Ends the whole process with SIGSYS.
    Kill,
    /// Allowed if every check holds; the first that does not gives the errno.
    When(&'static [Check]),
}

/// A condition on the low 32 bits of one argument, which are all the kernel reads of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    pub arg: u32,
    /// Bits outside the mask are not looked at.
    pub mask: u32,
    pub values: Values,
    pub errno: c_int,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Only(&'static [u32]),
    Never(&'static [u32]),
}
