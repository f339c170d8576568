//! `hotcell completions` and `hotcell man`: what a package has beside the program, made by the program itself.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap_complete::Shell;

use super::{OUR_FAILURE, print_error};

#[derive(clap::Args)]
pub struct Arguments {
    /// The shell to print them for
    #[arg(value_enum)]
    shell: Ours,
}

/// The shells that ours are tested with.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Ours {
    Bash,
    Zsh,
    Fish,
}

#[derive(clap::Args)]
pub struct Man {
    /// The folder to write the pages to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn main(arguments: &Arguments, mut command: clap::Command) -> ExitCode {
    let shell = match arguments.shell {
        Ours::Bash => Shell::Bash,
        Ours::Zsh => Shell::Zsh,
        Ours::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "hotcell", &mut text);
    // Nobody left to read is no failure of ours.
    let _ = io::stdout().lock().write_all(&text);
    ExitCode::SUCCESS
}

pub fn man(arguments: &Man, command: clap::Command) -> ExitCode {
    let folder = &arguments.folder;
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("{}: {error}", folder.display()), None);
            OUR_FAILURE.into()
        }
    }
}
