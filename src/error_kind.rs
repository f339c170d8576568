//! Why a program did not run, or did not end well, as one stable word for callers to match on.
//!
//! The words are a promise: `docs/errors.md` has them all, and none of them ever changes its
//! meaning. What to say about an error, and what to do about it, is known elsewhere.

use serde::Serialize;

/// `error.kind` of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    // Nothing ran: the request cannot be run as it is.
    InvalidRequest,
    UnknownLanguage,
    AmbiguousLanguage,
    MissingRuntime,
    UnsupportedPlatform,
    UnknownServer,
    Config,
    Busy,
    // Nothing ran: something failed on the way there.
    PackageNotFound,
    PackageInstall,
    Sandbox,
    // It failed by itself.
    Syntax,
    Exception,
    MissingModule,
    Signal,
    // It wanted more than it may have. The first is also said of a request.
    Denied,
    Timeout,
    Memory,
    Processes,
    Output,
    // It was ended from outside.
    Cancelled,
    Lost,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[rustfmt::skip]
    const ALL: [ErrorKind; ErrorKind::Lost as usize + 1] = [
        ErrorKind::InvalidRequest, ErrorKind::UnknownLanguage, ErrorKind::AmbiguousLanguage,
        ErrorKind::MissingRuntime, ErrorKind::UnsupportedPlatform, ErrorKind::UnknownServer,
        ErrorKind::Config, ErrorKind::Busy, ErrorKind::PackageNotFound, ErrorKind::PackageInstall,
        ErrorKind::Sandbox, ErrorKind::Syntax, ErrorKind::Exception, ErrorKind::MissingModule,
        ErrorKind::Signal, ErrorKind::Denied, ErrorKind::Timeout, ErrorKind::Memory,
        ErrorKind::Processes, ErrorKind::Output, ErrorKind::Cancelled, ErrorKind::Lost,
    ];

    #[test]
    fn the_documentation_has_every_kind_and_no_other() {
        let word = |kind: ErrorKind| serde_json::to_string(&kind).expect("a word");
        let own: BTreeSet<String> = ALL.map(|kind| word(kind).replace('"', "`")).into();
        assert_eq!(own.len(), ALL.len(), "one is listed twice");
        let (_, table) = include_str!("../docs/errors.md")
            .split_once("## `error.kind`")
            .expect("its section");
        let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
        let documented: BTreeSet<String> = table
            .lines()
            .filter_map(cell)
            .map(|word| format!("`{word}`"))
            .collect();
        assert_eq!(own, documented);
    }
}
