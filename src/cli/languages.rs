//! `hotcell languages`.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::engine::Engine;
use crate::language::{Listed, Runtime, Surroundings};

#[derive(clap::Args)]
pub struct Arguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    id: String,
    name: Option<String>,
    aliases: Vec<String>,
    /// The runtime's program on this machine, if there is one.
    path: Option<String>,
    /// Why it cannot run, if it cannot.
    problem: Option<String>,
    hint: Option<String>,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let engine = Engine::new(Surroundings::from_env());
    let listed = engine.registry().list();
    let rows: Vec<Row> = listed.into_iter().map(|one| row(&engine, one)).collect();
    let mut stdout = std::io::stdout().lock();
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows).unwrap_or_default();
        let _ = writeln!(stdout, "{text}");
    } else {
        for row in rows {
            let where_from = row.path.or(row.problem).unwrap_or_default();
            let _ = writeln!(stdout, "{:<14} {}", row.id, where_from);
            if let Some(hint) = row.hint {
                let _ = writeln!(stdout, "{:<14} {hint}", "");
            }
        }
    }
    ExitCode::SUCCESS
}

fn row(engine: &Engine, listed: Listed<'_>) -> Row {
    let mut row = Row {
        id: listed.id.to_owned(),
        name: None,
        aliases: Vec::new(),
        path: None,
        problem: None,
        hint: None,
    };
    let definition = match listed.definition {
        Ok(definition) => definition,
        Err(error) => {
            row.problem = Some(error.to_string());
            return row;
        }
    };
    row.name = Some(definition.name.clone());
    row.aliases = definition.aliases.iter().map(ToString::to_string).collect();
    match Runtime::preferred(definition, engine.surroundings()) {
        Ok(runtime) => row.path = Some(runtime.path.display().to_string()),
        Err(missing) => {
            row.problem = Some(missing.to_string());
            row.hint = missing.hint();
        }
    }
    row
}
