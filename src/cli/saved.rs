//! `hotcell saved`: the tools that programs have saved.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{OUR_FAILURE, print_error, print_json, print_line};
use crate::config::{Config, bridge_folder};
use crate::language::Surroundings;
use crate::publish::{SAVED, SavedFolder, SavedTool, SavedTools};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// List the tools, with what is wrong with those that cannot be used
    List,
    /// Print the file of a tool
    Show { name: String },
    /// Delete a tool; its versions stay
    Delete { name: String },
    /// Make an earlier version the tool again
    Restore {
        name: String,
        // Not `version`, which is a flag of every command.
        #[arg(value_name = "VERSION")]
        number: usize,
    },
}

/// What to exit with when a tool is broken, or is not there.
const MISSING: u8 = 1;

/// Where saved tools are; none if there is no home.
pub fn folder(around: &Surroundings) -> Option<PathBuf> {
    around.data.as_ref().map(|data| data.join("tools"))
}

/// The tools that programs have saved, and may save. None if the owner does not want that, or a server of theirs has the name.
pub fn tools(config: Option<&Config>, around: &Surroundings) -> Option<Arc<SavedTools>> {
    let config = config.filter(|it| it.save_tools)?;
    let is_taken = config.servers.iter().any(|(name, _)| name == SAVED);
    // The server that it replaces may have been told another folder.
    let own = |name: &str| std::env::var(name).ok();
    let told = bridge_folder(&own).filter(|_| config.replaces_bridge);
    let told = told.map(|told| told.join("tools"));
    let folder = told.or_else(|| folder(around)).filter(|_| !is_taken)?;
    Some(Arc::new(SavedTools::new(&folder)))
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let Some(path) = folder(&Surroundings::from_env()) else {
        print_error("there is no folder for saved tools", Some("Set HOME."));
        return OUR_FAILURE.into();
    };
    let folder = SavedFolder::new(&path);
    let done = match &arguments.command {
        None | Some(Command::List) => return list(&folder, arguments.json),
        Some(Command::Show { name }) => {
            let found = folder.find(name).map(|tool| path.join(tool.file_name));
            let shown = found.map(|file| show(&file));
            shown.transpose().map(|shown| shown.is_some())
        }
        Some(Command::Delete { name }) => folder.delete(name),
        Some(Command::Restore { name, number }) => folder.restore(name, *number),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            print_error("there is no such saved tool", Some("Run `hotcell saved`."));
            MISSING.into()
        }
        Err(error) => {
            print_error(&error.to_string(), None);
            OUR_FAILURE.into()
        }
    }
}

fn show(file: &Path) -> std::io::Result<()> {
    std::io::stdout().write_all(&std::fs::read(file)?)
}

fn list(folder: &SavedFolder, as_json: bool) -> ExitCode {
    let tools = folder.list();
    let is_broken = tools.iter().any(|tool| tool.front.is_err());
    if as_json {
        let entries: Vec<Value> = tools.iter().map(entry).collect();
        print_json(&entries);
    } else if tools.is_empty() {
        print_line("No tools are saved (see `hotcell help codemode`).");
    } else {
        let text: String = tools.iter().map(line).collect();
        // Nobody left to read is no failure of ours.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    match is_broken {
        true => MISSING.into(),
        false => ExitCode::SUCCESS,
    }
}

fn entry(tool: &SavedTool) -> Value {
    let mut entry = json!({ "name": tool.name, "file": tool.file_name, "version": tool.version });
    match &tool.front {
        Ok(front) => {
            entry["description"] = front.listing["description"].clone();
            entry["inputSchema"] = front.schema.clone();
        }
        Err(why) => entry["error"] = why.as_str().into(),
    }
    entry
}

fn line(tool: &SavedTool) -> String {
    let (name, version) = (&tool.name, tool.version);
    match &tool.front {
        Ok(front) => {
            let about = front.listing["description"].as_str().unwrap_or_default();
            let about = about.lines().next().unwrap_or_default();
            format!("{name} (version {version})  {}\n", about.escape_debug())
        }
        Err(why) => format!("{name} is broken: {}\n", why.escape_debug()),
    }
}
