//! `hotcell packages`: what is installed, and installing it before it is needed.

use std::io::Write;
use std::process::ExitCode;
use std::time::SystemTime;

use serde_json::json;

use super::{
    BAD_INPUT, OUR_FAILURE, explain, print_error, print_note, show_progress, single_thread,
    with_causes,
};
use crate::caller::Caller;
use crate::engine::Rejected;
use crate::hint::Surface;
use crate::packages::{PackageError, Readied, Set, Store};
use crate::request::{AskedPackages, RunRequest, parse_size};
use crate::run::Stream;
use crate::runtimes::megabytes;
use crate::service::{Observer, Output, Service, Settings};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the sets of packages that are installed, the last used first
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Install packages now, so that programs that import them start at once
    Add {
        /// The packages, as in numpy 'requests<3'
        #[arg(required = true)]
        names: Vec<String>,
        /// The language they are for
        #[arg(short, long, value_name = "NAME", default_value = "python")]
        language: String,
    },
    /// Remove every set that has one of these packages
    Remove {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove the sets that were used longest ago, until the rest fits
    Prune {
        /// Keep at most this much, as in 2g [default: the configured size]
        #[arg(long, value_name = "SIZE", conflicts_with = "all")]
        size: Option<String>,
        /// Remove everything
        #[arg(long)]
        all: bool,
    },
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let service = Service::new(Settings::for_one_run());
    if let Err(rejected) = service.engine().config() {
        explain(
            &with_causes(&rejected),
            rejected.hint(),
            Surface::CommandLine,
        );
        return BAD_INPUT.into();
    }
    if let Action::Add { names, language } = &arguments.action {
        return add(&service, names, language);
    }
    let packages = service.engine().packages();
    let size = match &arguments.action {
        Action::Prune {
            size: Some(text), ..
        } => match parse_size(text) {
            Ok(size) => size,
            Err(error) => {
                print_error(&format!("--size {text}: {error}"), None);
                return BAD_INPUT.into();
            }
        },
        Action::Prune { all: true, .. } => 0,
        _ => packages.settings().size,
    };
    let done = packages.store().and_then(|store| {
        Ok(match &arguments.action {
            Action::List { json: true } => json_list(&store),
            Action::List { .. } => table(&store),
            Action::Remove { names } => removed(&remove(&store, names)?),
            Action::Prune { .. } => {
                let gone = removed(&store.trim(size));
                let left: u64 = store.list().iter().map(|(set, _)| set.bytes).sum();
                match left > size {
                    true => format!(
                        "{gone}{} stay: used in the last quarter of an hour\n",
                        megabytes(left)
                    ),
                    false => gone,
                }
            }
            Action::Add { .. } => String::new(),
        })
    });
    match done {
        Ok(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            explain(&with_causes(&error), error.hint(), Surface::CommandLine);
            OUR_FAILURE.into()
        }
    }
}

/// Installs these packages, as for a program that imports them.
fn add(service: &Service, names: &[String], language: &str) -> ExitCode {
    let plan = || -> Result<_, Rejected> {
        let request = RunRequest::new("0")?.language(language);
        let request = request.packages(AskedPackages::List(names.to_vec()))?;
        service.prepare(request, &Caller::local())
    };
    let plan = match plan() {
        Ok(plan) => plan,
        Err(rejected) => {
            explain(
                &with_causes(&rejected),
                rejected.hint(),
                Surface::PackagesAdd,
            );
            return BAD_INPUT.into();
        }
    };
    let runtime = match single_thread() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let Some(packages) = plan.packages.as_deref().or(plan.lent.first()) else {
        return ExitCode::SUCCESS;
    };
    match runtime.block_on(service.install(packages, Printer)) {
        Ok(readied) => {
            if let Readied::With(installed) = readied {
                for name in installed.set.installed {
                    let _ = writeln!(std::io::stdout(), "{name}");
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            explain(&error.to_string(), error.hint(), Surface::PackagesAdd);
            OUR_FAILURE.into()
        }
    }
}

/// Shows on standard error how far an installation is.
struct Printer;

impl Observer for Printer {
    type Heard = ();

    async fn hear(self, mut output: Output) {
        while let Some(event) = output.recv().await {
            match event.stream {
                Stream::Progress => show_progress(&event.bytes),
                _ => {
                    show_progress(b"");
                    print_note(&String::from_utf8_lossy(&event.bytes));
                }
            }
        }
    }
}

fn remove(store: &Store, names: &[String]) -> Result<Vec<Set>, PackageError> {
    let is_named = |set: &Set| {
        let mut own = set.installed.iter().filter_map(|it| it.split("==").next());
        own.any(|own| names.iter().any(|name| own.eq_ignore_ascii_case(name)))
    };
    let mut gone = Vec::new();
    for (set, _) in store.list().into_iter().filter(|it| is_named(&it.0)) {
        store
            .remove(&set.tree)
            .map_err(|source| store.disk(source))?;
        gone.push(set);
    }
    Ok(gone)
}

fn json_list(store: &Store) -> String {
    let since = |used: SystemTime| used.elapsed().map_or(0, |age| age.as_secs());
    let row = |(set, used): (Set, SystemTime)| {
        json!({
            "language": set.language,
            "asked": set.asked,
            "installed": set.installed,
            "bytes": set.bytes,
            "used_seconds_ago": since(used),
            "lock": set.lock,
        })
    };
    let rows: Vec<_> = store.list().into_iter().map(row).collect();
    serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
}

fn table(store: &Store) -> String {
    let mut text = String::new();
    let mut total = 0;
    for (set, used) in store.list() {
        total += set.bytes;
        let minutes = used.elapsed().map_or(0, |age| age.as_secs() / 60);
        text += &format!(
            "{:<11} {:>9}  used {minutes} min ago  {}\n",
            set.language,
            megabytes(set.bytes),
            set.installed.join(" ")
        );
    }
    text + &format!("{} in {}\n", megabytes(total), store.folder().display())
}

fn removed(sets: &[Set]) -> String {
    let mut text = String::new();
    for set in sets {
        text += &format!(
            "removed {} ({})\n",
            set.installed.join(" "),
            megabytes(set.bytes)
        );
    }
    if sets.is_empty() {
        text += "nothing to remove\n";
    }
    text
}
