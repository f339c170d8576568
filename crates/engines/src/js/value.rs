//! Programs whose last value somebody wants to see: they give it away themselves.

use std::borrow::Cow;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, fs};

use super::{Failed, Program, SHOWS, ours, path_of};
use crate::script::{self, Dialect};

/// The program as it gives its last value away, if that is wanted and there is one.
pub fn wanted(source: &str, dialect: Dialect) -> Cow<'_, str> {
    let shows = env::var(SHOWS).unwrap_or_default();
    let written = shows
        .contains("value")
        .then(|| script::with_value(source, dialect));
    written.flatten().map_or(source.into(), Cow::Owned)
}

/// Writes that in the program's place, and starts the runtime that the arguments name on it in ours.
pub fn for_value(program: &Program) -> Result<u8, Failed> {
    let [runtime, args @ ..] = program.args.as_slice() else {
        return Err(ours("no program to start".to_owned()));
    };
    let main = path_of(program)?;
    // What is no text its runtime tells of.
    if let Ok(source) = program.text()
        && let Cow::Owned(written) = wanted(source, Dialect::of(&main))
    {
        fs::write(&main, written).map_err(|error| ours(format!("{}: {error}", main.display())))?;
    }
    // Returns only if that failed.
    let error = Command::new(runtime).args(args).exec();
    Err(ours(format!("{runtime}: {error}")))
}
