//! What a program needs to show pictures and its last value: scripts of its language, and a folder that they come back in.

use crate::cell::Launch;
use crate::language::{Definition, Display, Runtime, Wants};
use crate::request::{CellPath, FileSource, InputFile, Showing};

use super::binding::{FOLDER, insert_before, set_variable};

/// What the program may show, if its caller wants to see it and its language can.
pub fn wants<'a>(
    definition: &'a Definition,
    code: &[u8],
    showing: Showing,
) -> Option<(&'a Display, Wants)> {
    let display = definition.display.as_ref()?;
    if showing == Showing::Nothing {
        return None;
    }
    let code = String::from_utf8_lossy(code);
    let wants = Wants {
        display: display.is_mentioned(&code),
        value: matches!(showing, Showing::All | Showing::Prompt)
            && may_have_value(definition, display, &code),
    };
    (wants != Wants::default()).then_some((display, wants))
}

fn may_have_value(definition: &Definition, display: &Display, code: &str) -> bool {
    let warm = definition.warm.iter().flat_map(|warm| &warm.exact);
    display.value.as_ref().is_some_and(|value| {
        let mut exact = value.exact.iter().chain(warm);
        value.may_end(code) && !exact.any(|word| code.contains(word.as_str()))
    })
}

/// Lets the program, which is `program` on its command line, show what it wants.
pub fn equip(
    mut launch: Launch,
    (display, wants): (&Display, Wants),
    runtime: &Runtime,
    program: &str,
) -> Launch {
    let fill = filler(wants);
    for (name, value) in &display.env {
        set_variable(&mut launch.env, name, &fill(value));
    }
    // A command with a prelude of its own does all of it there.
    if let Some(prestart) = &mut launch.prestart
        && runtime.way.prelude.is_empty()
    {
        prestart.prelude = format!("{}\n{}", prestart.prelude, fill(&display.prelude));
    }
    let first = display.scripts.first().map_or("", |script| script.name);
    let first = format!("/workspace/{FOLDER}/{first}");
    let preload = runtime.way.preload.iter();
    let preload = preload.map(|word| word.replace("{binding}", &first));
    insert_before(&mut launch.argv, program, preload);
    // Other commands start their programs in a way of their own, and find the scripts there.
    if runtime.way.when.is_none() {
        let start = display.start.iter().map(|word| fill(word));
        insert_before(&mut launch.argv, program, start);
    }
    if let Some(engine) = runtime.way.value.as_ref().filter(|_| wants.value) {
        let words = [jail::ENGINE, engine, program].map(str::to_owned);
        launch.argv.splice(0..0, words);
        // It changes the program's file, which is no change of the program's.
        if let (Some(wanted), Some(file)) = (&mut launch.changes, launch.files.first()) {
            wanted.except.push(file.path.clone());
        }
    }
    if !display.prepend.is_empty()
        && let Some(InputFile {
            source: FileSource::Bytes(code),
            ..
        }) = launch.files.first_mut()
    {
        let line = fill(&display.prepend).replace("{file}", program);
        *code = [line.as_bytes(), b"\n", code].concat();
    }
    lay_out(launch, display, wants)
}

/// Puts the scripts into the workspace, with the folder for what is shown.
pub fn lay_out(mut launch: Launch, display: &Display, wants: Wants) -> Launch {
    let fill = filler(wants);
    let scripts = display
        .scripts
        .iter()
        .map(|script| InputFile::from_bytes(path(script.name), fill(script.text)));
    let shown = path("display");
    let folder = InputFile {
        path: shown.clone(),
        source: FileSource::EmptyFolder,
        mode: 0o755,
    };
    let files: Vec<InputFile> = scripts.chain([folder]).collect();
    // The program's caller cannot put others in their place.
    let is_free = |file: &InputFile| !files.iter().any(|own| own.is_in_the_way_of(file));
    launch.files.retain(is_free);
    Launch {
        shown: Some(shown),
        ..launch.files(files)
    }
}

/// Fills in what the texts of `[display]` leave open.
fn filler(wants: Wants) -> impl Fn(&str) -> String {
    let folder = format!("/workspace/{FOLDER}");
    move |mut text: &str| {
        let mut filled = String::with_capacity(text.len() + 64);
        // Once through it: a script is long, and this is done for each run.
        while let Some(at) = text.find('{') {
            filled.push_str(&text[..at]);
            let (own, name) = match &text[at..] {
                it if it.starts_with("{folder}") => (folder.as_str(), "{folder}"),
                it if it.starts_with("{wants}") => (wants.words(), "{wants}"),
                _ => ("{", "{"),
            };
            filled.push_str(own);
            text = &text[at + name.len()..];
        }
        filled + text
    }
}

fn path(name: &str) -> CellPath {
    CellPath::parse(&format!("{FOLDER}/{name}")).expect("a plain path")
}
