//! `hotcell doctor`.

use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Arguments {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let _ = arguments.json;
    ExitCode::SUCCESS
}
