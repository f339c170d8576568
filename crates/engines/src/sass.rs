//! Sass and SCSS to CSS, by grass. Files of the workspace can be imported.

use std::io::{self, Write};

use grass::{ErrorKind, InputSyntax, Options};

use super::{Failed, Program, ours};

/// The exit code of the real sass for a stylesheet that it cannot compile.
const BROKEN: u8 = 65;

pub fn sass(program: &Program) -> Result<u8, Failed> {
    compile(program, InputSyntax::Sass)
}

pub fn scss(program: &Program) -> Result<u8, Failed> {
    compile(program, InputSyntax::Scss)
}

fn compile(program: &Program, syntax: InputSyntax) -> Result<u8, Failed> {
    let source = program.text()?;
    let options = Options::default().input_syntax(syntax).load_path(".");
    let css = grass::from_string(source, &options).map_err(|error| {
        let whole = error.to_string();
        match error.kind() {
            ErrorKind::ParseError { message, loc, .. } => {
                // A program that came as text is called `stdin` by the crate.
                let file = match loc.file.name() {
                    "stdin" => program.file.as_str(),
                    other => other.trim_start_matches("./"),
                };
                let (line, column) = (loc.begin.line + 1, loc.begin.column + 1);
                let quoted = source.lines().nth(loc.begin.line).unwrap_or_default();
                let place = format!("{file}:{line}:{column}");
                Failed {
                    code: BROKEN,
                    message: format!("{place}: {message}\n  | {}", quoted.trim_end()),
                }
            }
            _ => Failed {
                code: BROKEN,
                message: format!("{}: {whole}", program.file),
            },
        }
    })?;
    let printed = io::stdout().write_all(css.as_bytes());
    printed.map_err(|error| ours(error.to_string()))?;
    Ok(0)
}
