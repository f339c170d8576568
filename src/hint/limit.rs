//! The limits that callers ask for and owners decide about, and what to do where one was met.

use super::Surface;

/// A limit that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Timeout,
    Memory,
    Processes,
    Cpus,
    Output,
}

impl Limit {
    /// Its name in a configuration and among the parameters of a tool.
    pub fn key(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpus => "cpus",
            Self::Output => "output",
        }
    }

    /// Who can raise the most that is allowed, and by what; if anybody can.
    pub fn who_can_raise(self) -> Option<String> {
        let key = self.key();
        (self != Self::Output)
            .then(|| format!("the owner can raise it with `[limits] max.{key}` in config.toml"))
    }

    /// What a program can do that has met it.
    fn do_less(self) -> &'static str {
        match self {
            Self::Timeout | Self::Cpus => "let the program do less",
            Self::Memory => "let the program use less memory",
            Self::Processes => "start fewer processes and threads",
            Self::Output => "print less",
        }
    }

    /// What to do where it was met, and `most` may be asked for; `None` if it was that.
    pub(super) fn raise(self, most: Option<&str>, surface: Surface) -> String {
        let (key, less) = (self.key(), self.do_less());
        match (surface, most) {
            (Surface::CommandLine | Surface::PackagesAdd, Some(_)) => match self {
                Self::Processes => format!("Raise the limit with `--pids`, or {less}."),
                _ => format!("Raise the limit with `--{key}`."),
            },
            (Surface::CommandLine | Surface::PackagesAdd, None) => {
                format!("Raise `[limits] max.{key}` in config.toml, or {less}.")
            }
            (Surface::Mcp, Some(most)) => {
                format!("Give a larger `{key}` (up to {most}), or {less}.")
            }
            (Surface::Compat(shown), Some(most)) if shown.timeout && self == Self::Timeout => {
                format!("Give a larger `{key}` (up to {most}), or {less}.")
            }
            (Surface::Compat(_), Some(_)) => {
                let (first, rest) = less.split_at(1);
                format!(
                    "{}{rest}, or have the server's owner raise `[limits] default.{key}`.",
                    first.to_uppercase()
                )
            }
            (Surface::Mcp | Surface::Compat(_), None) => {
                let (first, rest) = less.split_at(1);
                format!(
                    "{}{rest}: this is the most that the server allows, and only its owner can raise it, \
                 with `[limits] max.{key}`.",
                    first.to_uppercase()
                )
            }
        }
    }
}
