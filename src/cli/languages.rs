//! `hotcell languages`: what can run here, and what to do about the rest.

use std::io::Write;
use std::process::ExitCode;

use super::{BAD_INPUT, explain, with_causes};
use crate::hint::Surface;
use crate::language::{Row, rows};
use crate::service::{Service, Settings};

mod fetch;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    change: Option<fetch::Change>,
    /// List only this language
    #[arg(value_name = "LANGUAGE")]
    name: Option<String>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let service = Service::new(Settings::for_one_run());
    let engine = service.engine();
    let config = engine.config();
    if let Err(rejected) = &config {
        // The list is right without it; nothing is changed before it is fixed.
        explain(
            &with_causes(rejected),
            rejected.hint(),
            Surface::CommandLine,
        );
    }
    if let Some(change) = &arguments.change {
        return match config {
            Ok(_) => fetch::main(change, engine),
            Err(_) => BAD_INPUT.into(),
        };
    }
    // As `serve` would have it.
    let mut rows = rows(engine.registry(), engine.surroundings(), true);
    if let Some(name) = &arguments.name {
        match engine.registry().find(name) {
            Ok(language) => rows.retain(|row| row.id == language.id.as_str()),
            Err(error) => {
                explain(&with_causes(&error), error.hint(), Surface::CommandLine);
                return BAD_INPUT.into();
            }
        }
    }
    let mut stdout = std::io::stdout().lock();
    let text = if arguments.json {
        serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
    } else {
        table(&rows)
    };
    let _ = stdout.write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// What can run first: version, where from, warm or cold, program. Then the rest, with the reason
/// and what to do.
fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let (here, missing): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.available);
    for row in &here {
        let version = row.version.as_deref().unwrap_or("-");
        let path = row.path.as_deref().unwrap_or_default();
        let (from, start) = (row.from.unwrap_or_default(), row.start.unwrap_or_default());
        text += &format!("{:<13} {version:<12} {from:<9} {start:<5} {path}\n", row.id);
    }
    if rows.len() > 1 {
        text += &format!(
            "\n{} of {} can run here. Not here:\n\n",
            here.len(),
            rows.len()
        );
    }
    for row in missing {
        let problem = row.problem.as_deref().unwrap_or_default();
        text += &format!("{:<13} {problem}\n", row.id);
        if let Some(hint) = &row.hint {
            text += &format!("{:<13} {hint}\n", "");
        }
    }
    text
}
