//! `hotcell languages add` and `hotcell languages remove`.

use std::io::Write;
use std::process::{Command, ExitCode};

use crate::cli::{BAD_INPUT, OUR_FAILURE, explain, print_error, print_note, with_causes};
use crate::engine::Engine;
use crate::hint::Surface;
use crate::language::{Definition, Runtime, UnsupportedPlatform};
use crate::runtimes::{self, Bar, FetchError, Order, RuntimesFolder, Wanted};

#[derive(clap::Subcommand)]
pub enum Change {
    /// Download runtimes for languages, or `gvisor`, into your data folder
    Add(Add),
    /// Remove a runtime that was downloaded
    Remove {
        /// The language, by its id or another of its names
        language: String,
    },
}

#[derive(clap::Args)]
pub struct Add {
    /// The languages, by their ids or other names of theirs
    #[arg(required = true, value_name = "LANGUAGE")]
    languages: Vec<String>,
    /// Which runtime to download, where a language has several
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
    /// Download one even if this machine has one already, and use it first
    #[arg(long)]
    prefer: bool,
    /// Install the system's packages with apt instead (as root)
    #[arg(long, conflicts_with_all = ["recipe", "prefer"])]
    apt: bool,
}

pub fn main(change: &Change, engine: &Engine) -> ExitCode {
    let names = match change {
        Change::Add(add) => add.languages.as_slice(),
        Change::Remove { language } => std::slice::from_ref(language),
    };
    if let Change::Add(Add { languages, .. }) = change
        && let [tool] = languages.as_slice()
        && TOOLS.contains(&tool.as_str())
    {
        return add_tool(tool, engine);
    }
    // Nothing is begun if one of them is misspelled.
    let mut definitions = Vec::new();
    for name in names {
        let registry = engine.registry();
        // `bun` is no language, but what runs one.
        let of_recipe = || registry.find(&runtimes::language_of(name)?).ok();
        match registry.find(name).or_else(|it| of_recipe().ok_or(it)) {
            Ok(definition) => definitions.push(definition),
            Err(error) => {
                explain(&error.to_string(), error.hint(), Surface::CommandLine);
                return BAD_INPUT.into();
            }
        }
    }
    if let Change::Add(Add { apt: true, .. }) = change {
        return apt(&definitions, engine);
    }
    let mut code = ExitCode::SUCCESS;
    for (name, definition) in names.iter().zip(definitions) {
        let done = match change {
            Change::Add(asked) => add(asked, name, definition, engine),
            Change::Remove { .. } => remove(definition, engine),
        };
        match done {
            Ok(text) => {
                let _ = writeln!(std::io::stdout(), "{text}");
            }
            Err(FetchError::NoRecipe(_)) => code = no_recipe(definition, engine),
            Err(error) => {
                print_error(&with_causes(&error), error.hint().as_deref());
                code = OUR_FAILURE.into();
            }
        }
    }
    code
}

/// Recipes that run no language, and that users ask for.
const TOOLS: [&str; 1] = ["gvisor"];

fn add_tool(name: &str, engine: &Engine) -> ExitCode {
    let around = engine.surroundings();
    let data = around.data.as_deref().ok_or(FetchError::NoFolder);
    let mut bar = Bar::new();
    let added = data.and_then(|data| {
        let place = RuntimesFolder::in_data(data);
        runtimes::add_recipe(name, &place, around.config.as_deref(), &mut |event| {
            bar.tell(event)
        })
    });
    match added {
        Ok(added) => {
            let was = if added.already {
                "was here already"
            } else {
                "is here"
            };
            let _ = writeln!(
                std::io::stdout(),
                "`{name}` {} {was}: `--isolation {name}` uses it.",
                added.version
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(&with_causes(&error), error.hint().as_deref());
            OUR_FAILURE.into()
        }
    }
}

/// Says where else the language may come from, as a run that is refused does.
fn no_recipe(definition: &Definition, engine: &Engine) -> ExitCode {
    let id = &definition.id;
    let (message, hint) = match UnsupportedPlatform::check(definition) {
        Err(error) => (error.to_string(), None),
        Ok(()) => {
            let missing = Runtime::find(definition, engine.surroundings()).err();
            let hint = missing.and_then(|missing| missing.hint());
            (format!("there is no recipe for `{id}`"), hint)
        }
    };
    print_error(&message, hint.as_deref());
    OUR_FAILURE.into()
}

fn add(
    asked: &Add,
    name: &String,
    definition: &Definition,
    engine: &Engine,
) -> Result<String, FetchError> {
    let around = engine.surroundings();
    let place = RuntimesFolder::in_data(around.data.as_deref().ok_or(FetchError::NoFolder)?);
    // `deno` is another name of a language, and of what runs it: who says it means that.
    let named = Some(name).filter(|name| {
        definition.id.as_str() != name.as_str()
            && runtimes::offers_by(name, definition.id.as_str())
            && !Runtime::is_in_path(name, around)
    });
    let recipe = asked.recipe.as_ref().or(named);
    let is_plain = !asked.prefer && recipe.is_none();
    if let Some(runtime) = satisfied(definition, engine).filter(|_| is_plain) {
        let id = &definition.id;
        return Ok(match runtime.is_embedded() {
            true => format!(
                "`{id}` runs already, with {}, which is built in; nothing was fetched.",
                runtime.command
            ),
            false => format!(
                "`{id}` runs already, with {}; nothing was fetched. With --prefer one is fetched and used instead.",
                runtime.path.display()
            ),
        });
    }
    let mut bar = Bar::new();
    let has = |command: &str| Runtime::is_in_path(command, around);
    let wanted = Wanted {
        language: definition.id.as_str(),
        recipe: recipe.map(String::as_str),
        order: if asked.prefer {
            Order::BeforePath
        } else {
            Order::AfterPath
        },
        has: &has,
    };
    let added = runtimes::add(&wanted, &place, around.config.as_deref(), &mut |event| {
        bar.tell(event)
    })?;
    let (recipe, version) = (added.recipe, added.version);
    Ok(match Runtime::find(definition, around) {
        Ok(runtime) if added.already => format!(
            "`{}` had {recipe} {version} already: {}",
            definition.id,
            runtime.path.display()
        ),
        Ok(runtime) => format!(
            "`{}` runs with {recipe} {version}: {}",
            definition.id,
            runtime.path.display()
        ),
        Err(missing) => format!("{recipe} {version} was fetched, but {missing}"),
    })
}

/// What runs the language already, unless that is only a built-in substitute.
fn satisfied(definition: &Definition, engine: &Engine) -> Option<Runtime> {
    let found = Runtime::find(definition, engine.surroundings()).ok()?;
    let first = definition.commands().first()?;
    (!found.is_embedded() || *first == found.way).then_some(found)
}

fn remove(definition: &Definition, engine: &Engine) -> Result<String, FetchError> {
    let data = engine.surroundings().data.as_deref();
    let place = RuntimesFolder::in_data(data.ok_or(FetchError::NoFolder)?);
    let removed = runtimes::remove(definition.id.as_str(), &place)?;
    let names = removed.iter().map(|it| {
        let (recipe, version) = (&it.recipe, &it.version);
        format!("{recipe} {version} (for {})", it.languages.join(", "))
    });
    Ok(format!(
        "removed {}",
        names.collect::<Vec<_>>().join(" and ")
    ))
}

/// Installs the packages that the definitions name, all at once, with the system's own tool.
fn apt(definitions: &[&Definition], engine: &Engine) -> ExitCode {
    let mut packages = Vec::new();
    for definition in definitions {
        if satisfied(definition, engine).is_some() {
            let _ = writeln!(std::io::stdout(), "`{}` runs already", definition.id);
        } else if let Some(names) = &definition.runtime.install.apt {
            packages.push(names.as_str());
        } else {
            let missing = Runtime::find(definition, engine.surroundings()).err();
            let hint = missing.and_then(|missing| missing.hint());
            let message = format!("`{}` has no package for apt", definition.id);
            print_error(&message, hint.as_deref());
            return BAD_INPUT.into();
        }
    }
    if packages.is_empty() {
        return ExitCode::SUCCESS;
    }
    let packages = packages.join(" ");
    let command = format!("apt-get install -y --no-install-recommends {packages}");
    if !rustix::process::geteuid().is_root() {
        let hint = format!("Run `{command}` as root, or leave --apt out.");
        print_error("only root can install packages", Some(&hint));
        return BAD_INPUT.into();
    }
    print_note(&format!("running {command}"));
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = Command::new(program)
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            print_error(
                &format!("apt-get ended with {status}"),
                Some("Run `apt-get update` and try again."),
            );
            OUR_FAILURE.into()
        }
        Err(error) => {
            print_error(&format!("apt-get did not start: {error}"), None);
            OUR_FAILURE.into()
        }
    }
}
