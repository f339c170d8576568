//! `hotcell skill`: what teaches an agent to use hotcell, as a skill (agentskills.io): a folder with a `SKILL.md`.

use std::fmt::Write;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use super::{BAD_INPUT, OUR_FAILURE, print_error, print_line, saved};
use crate::language::Surroundings;
use crate::publish::{SavedFolder, SavedTool};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Print the skill
    Show,
    /// Write the skill where agents look for skills
    Install {
        /// The folder of skills [default: those of the agents on this machine, such as ~/.claude/skills]
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Put the saved tools into the skill too, as scripts
        #[arg(long)]
        saved: bool,
    },
}

const NAME: &str = "hotcell";
const SKILL: &str = include_str!("../../skills/hotcell/SKILL.md");
/// Folders in a home whose `skills` an agent reads, where the agent is used. The last is common to several.
const AGENTS: [&str; 5] = [".claude", ".codex", ".cursor", ".gemini", ".agents"];

pub fn main(arguments: &Arguments) -> ExitCode {
    let (to, with_saved) = match &arguments.command {
        None | Some(Command::Show) => {
            // Nobody left to read is no failure of ours.
            let _ = io::stdout().write_all(SKILL.as_bytes());
            return ExitCode::SUCCESS;
        }
        Some(Command::Install { to, saved }) => (to, *saved),
    };
    let around = Surroundings::from_env();
    let folders = match (to, &around.home) {
        (Some(folder), _) => vec![folder.clone()],
        (None, Some(home)) => agents(home),
        (None, None) => {
            print_error("there is no home", Some("Name a folder with --to."));
            return BAD_INPUT.into();
        }
    };
    let tools = match (with_saved, saved::folder(&around)) {
        (true, Some(folder)) => SavedFolder::new(&folder).list(),
        _ => Vec::new(),
    };
    for folder in folders {
        let skill = folder.join(NAME);
        if let Err(error) = install(&skill, &tools) {
            print_error(&format!("{}: {error}", skill.display()), None);
            return OUR_FAILURE.into();
        }
        print_line(skill.join("SKILL.md").display());
    }
    ExitCode::SUCCESS
}

/// The folders of skills of the agents that are used here; the common one if there is none.
fn agents(home: &Path) -> Vec<PathBuf> {
    let is_used = |agent: &&str| home.join(agent).is_dir();
    let mut used: Vec<&str> = AGENTS.into_iter().filter(is_used).collect();
    if used.is_empty() {
        used.extend(AGENTS.last());
    }
    let skills = |agent: &str| home.join(agent).join("skills");
    used.into_iter().map(skills).collect()
}

/// Writes the skill. One of this name that is not ours stays as it is.
fn install(skill: &Path, tools: &[SavedTool]) -> io::Result<()> {
    let file = skill.join("SKILL.md");
    let is_ours = |text: &str| text.lines().any(|line| line.trim() == "name: hotcell");
    match fs::read_to_string(&file) {
        Ok(text) if !is_ours(&text) => {
            return Err(io::Error::other("there is another skill; move it away"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::create_dir_all(skill)?;
    let mut text = SKILL.to_owned();
    let usable: Vec<&SavedTool> = tools.iter().filter(|tool| tool.front.is_ok()).collect();
    if !usable.is_empty() {
        text += "\n## Saved tools\n\nCall them in a program of `run` as `saved.NAME(...)`. Their sources are in `scripts/`.\n\n";
        let scripts = skill.join("scripts");
        fs::create_dir_all(&scripts)?;
        for tool in usable {
            fs::write(scripts.join(&tool.file_name), &tool.code)?;
            let front = tool.front.as_ref().ok();
            let about = front.and_then(|front| front.listing["description"].as_str());
            let about = about.unwrap_or_default().lines().next().unwrap_or_default();
            let _ = writeln!(text, "- `{}`: {about}", tool.name);
        }
    }
    fs::write(file, text)
}
