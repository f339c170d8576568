//! The module `hotcell`, for programs that ask for it. SECURITY: nobody else's package of that name is ever installed (`packages/wishes`).

use std::path::Path;

use super::binding::insert_before;
use super::build::Build;
use super::placeholders::Names;
use crate::cell::Launch;
use crate::language::{Definition, Module};
use crate::request::{CellPath, FileSource, InputFile};

/// Puts the module into the workspace, unless the caller has one.
pub fn add(mut launch: Launch, definition: &Definition) -> Launch {
    let Some(module) = asked_for(definition, &launch.files).filter(|it| it.build.is_none()) else {
        return launch;
    };
    place(module, "", &mut launch.files);
    if !module.env.is_empty() {
        // A runtime that is started already would not see them.
        launch.prestart = None;
    }
    launch.default_env(module.env.clone())
}

/// Lets a compiler find it.
pub fn add_to_build(mut build: Build, definition: &Definition, names: &Names<'_>) -> Build {
    let asked = asked_for(definition, &build.files);
    let Some((module, how)) = asked.and_then(|it| Some((it, it.build.as_ref()?))) else {
        return build;
    };
    let folder = Path::new(&names.runtime.program).ancestors().nth(2);
    let prefix = folder.map(|it| it.to_string_lossy()).unwrap_or_default();
    place(module, &prefix, &mut build.files);
    for step in &mut build.steps {
        insert_before(step, names.file, names.arguments(&how.flags).into_iter());
    }
    let steps = how.steps.iter().map(|step| names.expand(step));
    build.module_steps = steps.collect();
    build.module_flags = names.arguments(&how.with_packages).concat();
    build
}

/// The module, if the program or a file of its language beside it asks for it.
fn asked_for<'a>(definition: &'a Definition, files: &[InputFile]) -> Option<&'a Module> {
    let module = definition.module.as_ref()?;
    let asks = |(at, file): (usize, &InputFile)| match &file.source {
        // The first is the program.
        FileSource::Bytes(text) if at == 0 || definition.owns(file.path.as_str()) => {
            module.is_mentioned(text)
        }
        _ => false,
    };
    files.iter().enumerate().any(asks).then_some(module)
}

/// `{prefix}` in a file is the folder that the runtime is installed in.
fn place(module: &Module, prefix: &str, files: &mut Vec<InputFile>) {
    for (path, text) in &module.files {
        let Ok(path) = CellPath::parse(path) else {
            continue;
        };
        let file = InputFile::from_bytes(path, text.replace("{prefix}", prefix));
        if !files.iter().any(|it| it.is_in_the_way_of(&file)) {
            files.push(file);
        }
    }
}
