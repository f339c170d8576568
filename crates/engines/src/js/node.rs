//! Programs that node cannot read: types are taken away and `npm:` from the names of packages, and
//! node is started on what is left in our place.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, fs};

use super::{Failed, Program, not_a_program, ours};
use crate::script::{self, Dialect};

/// What node is started on. Beside the program, so that its relative imports are right.
const WRITTEN: &str = ".main";

/// The first argument is node's own program.
pub fn for_node(program: &Program) -> Result<u8, Failed> {
    let [node, args @ ..] = program.args.as_slice() else {
        return Err(ours("no program to start".to_owned()));
    };
    let folder = env::current_dir().map_err(|error| ours(error.to_string()))?;
    let main = folder.join(&program.file);
    let source = program.text()?;
    let bare = script::with_bare_names(source);
    let script = script::read(&main, &bare, Dialect::TypeScript)
        .map_err(|broken| not_a_program(&main, source, &broken))?;
    let ending = if script.is_module { "mjs" } else { "cjs" };
    let written = main.with_file_name(format!("{WRITTEN}.{ending}"));
    // With the map in it node names places of the source.
    let code = match script.map {
        Some(map) => format!("{}\n//# sourceMappingURL={map}\n", script.code),
        None => script.code,
    };
    fs::write(&written, code).map_err(|error| ours(format!("{}: {error}", written.display())))?;
    let mut command = Command::new(node);
    command.arg("--enable-source-maps").arg(&written).args(args);
    // Returns only if that failed.
    Err(ours(format!("{node}: {}", command.exec())))
}
