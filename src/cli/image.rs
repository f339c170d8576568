//! `hotcell image`: makes images for containers, without any registry.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::{BAD_INPUT, OUR_FAILURE, print_error, print_line, print_note};
use crate::cell::{EngineKind, ImageOf, build_image};
use crate::config::{Config, is_image_name};
use crate::language::Surroundings;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an image of this system, with a copy of its /usr, of a root file system in a folder, or of another image
    ///
    /// Programs need none: without `[container] image` in config.toml, containers see this system's /usr itself.
    Build {
        /// The engine that is to have it
        #[arg(long, value_name = "ENGINE", value_parser = ["podman", "docker"], default_value = "podman")]
        engine: String,
        /// The folder with the root file system, as `debootstrap` makes one [default: this system]
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
        /// Another image, which is pulled if it is not here
        #[arg(long, value_name = "IMAGE", conflicts_with = "root")]
        from: Option<String>,
        /// What it is called
        #[arg(default_value = "localhost/hotcell-system:latest")]
        name: String,
    },
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let Command::Build {
        engine,
        root,
        from,
        name,
    } = &arguments.command;
    let kind = match engine.as_str() {
        "docker" => EngineKind::Docker,
        _ => EngineKind::Podman,
    };
    for name in [name].into_iter().chain(from) {
        if !is_image_name(name) {
            let hint = "Use letters, digits and `. / : _ - @`.";
            print_error(&format!("`{name}` is no name of an image"), Some(hint));
            return BAD_INPUT.into();
        }
    }
    if let Some(root) = root
        && !root.join("usr").is_dir()
    {
        let message = format!("`{}` has no folder `usr`", root.display());
        print_error(&message, Some("Name the root of a system."));
        return BAD_INPUT.into();
    }
    let config = Config::load(Surroundings::from_env().config.as_deref());
    let settings = config.map(|config| config.container).unwrap_or_default();
    let content = match (from, root) {
        (Some(from), _) => ImageOf::Image(from),
        (None, Some(root)) => ImageOf::Folder(root),
        (None, None) => ImageOf::System,
    };
    match build_image(kind, &settings, name, content) {
        Ok(()) => {
            print_line(name);
            print_note(&format!(
                "to use it, write to config.toml: [container] image = \"{name}\""
            ));
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(&error.to_string(), error.hint().as_deref());
            OUR_FAILURE.into()
        }
    }
}
