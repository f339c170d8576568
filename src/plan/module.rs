//! The module `hotcell`, for programs that ask for it. SECURITY: nobody else's package of that name is ever installed (`packages/wishes`).

use crate::cell::Launch;
use crate::language::Definition;
use crate::request::{CellPath, InputFile};

/// Puts the module into the workspace, unless the caller has one.
pub fn add(mut launch: Launch, definition: &Definition, code: &[u8]) -> Launch {
    let module = definition.module.as_ref();
    let Some(module) = module.filter(|module| module.is_mentioned(code)) else {
        return launch;
    };
    for (path, text) in &module.files {
        let Ok(path) = CellPath::parse(path) else {
            continue;
        };
        let file = InputFile::from_bytes(path, *text);
        if !launch.files.iter().any(|it| it.is_in_the_way_of(&file)) {
            launch.files.push(file);
        }
    }
    if !module.env.is_empty() {
        // A runtime that is started already would not see them.
        launch.prestart = None;
    }
    launch.default_env(module.env.clone())
}
