//! `hotcell doctor`: prints what the doctor found.

use std::io::{self, Write};
use std::process::ExitCode;

use super::{OUR_FAILURE, explain, single_thread, with_causes};
use crate::doctor::{
    Group, Kept, Level, Report, State, engines_found, examine, examine_engines, verify,
};
use crate::hint::Surface;
use crate::request::IsolationChoice;
use crate::service::{Service, Settings};

const EXIT_CODES: &str = "\
Exit codes:
  0    everything is in order
  1    programs run, but a part of the sandbox is missing or failed, or something that is kept was damaged
  125  no sandbox can be made";

/// What to exit with when not everything is in order.
const REDUCED: u8 = 1;

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Read all that hotcell keeps on the disk (built programs, packages, runtimes), and throw away what is not as it was stored
    #[arg(long)]
    store: bool,
    /// Also test the container engines and the gVisor of this machine, each with a program in a sandbox
    #[arg(long)]
    engines: bool,
    /// Test this kind of sandbox instead of the one that is used
    #[arg(long, value_name = "PROVIDER", value_parser = IsolationChoice::WORDS)]
    isolation: Option<String>,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let runtime = match single_thread() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let asked = arguments.isolation.as_deref();
    let service = Service::new(Settings {
        isolation: asked.and_then(IsolationChoice::parse),
        ..Settings::for_one_run()
    });
    let engine = service.engine();
    // No wall depends on it, but nothing will run.
    let broken = engine.config().err();
    if let Some(rejected) = &broken {
        explain(
            &with_causes(rejected),
            rejected.hint(),
            Surface::CommandLine,
        );
    }
    if arguments.store {
        return stores(&verify(engine), arguments.json);
    }
    let report = Report {
        config: broken.as_ref().map(|it| with_causes(it)),
        engines: match arguments.engines {
            true => runtime.block_on(examine_engines(engine)),
            false => Vec::new(),
        },
        ..runtime.block_on(examine(engine))
    };
    let text = if arguments.json {
        serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
    } else {
        show(&report, &engines_found(engine))
    };
    let _ = io::stdout().lock().write_all(text.as_bytes());
    match report.isolation {
        Level::Full if broken.is_none() => ExitCode::SUCCESS,
        Level::Full | Level::Reduced => REDUCED.into(),
        Level::None => OUR_FAILURE.into(),
    }
}

fn stores(all: &[Kept], json: bool) -> ExitCode {
    let text = if json {
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    } else {
        let lines = all.iter().flat_map(|kept| {
            let damaged = kept.damaged.len();
            let mark = if damaged == 0 { "ok" } else { "DAMAGED" };
            let line = format!("  {mark:<8}{:<20}{damaged} of {}\n", kept.name, kept.count);
            let names = kept.damaged.iter().map(|it| format!("          {it}\n"));
            let fix = kept.fix.iter().map(|it| format!("          fix: {it}\n"));
            [line].into_iter().chain(names).chain(fix)
        });
        format!(
            "damaged, of all that is kept\n{}",
            lines.collect::<String>()
        )
    };
    let _ = io::stdout().lock().write_all(text.as_bytes());
    match all.iter().all(|kept| kept.damaged.is_empty()) {
        true => ExitCode::SUCCESS,
        false => REDUCED.into(),
    }
}

fn show(report: &Report, engines: &[&str]) -> String {
    let mut lines = Vec::new();
    let mut group = None;
    for check in &report.checks {
        if group != Some(check.group) {
            group = Some(check.group);
            lines.push(heading(check.group).to_owned());
        }
        let mark = match check.state {
            State::Ok => "ok",
            State::Missing => "MISSING",
            State::Failed => "FAILED",
        };
        lines.push(format!("  {mark:<8}{:<20}{}", check.name, check.means));
        for (what, text) in [("found", &check.found), ("fix", &check.fix)] {
            lines.extend(
                text.as_ref()
                    .map(|text| format!("          {what}: {text}")),
            );
        }
    }
    let languages = &report.languages;
    lines.push("this host".to_owned());
    lines.push(format!("  kernel {}", report.kernel));
    if let Some(filter) = &report.filter {
        lines.push(format!("  system call filter {filter}"));
    }
    lines.push(format!(
        "  {} of {} languages can run (`hotcell languages` lists them)",
        languages.runnable.len(),
        languages.known
    ));
    if report.engines.is_empty() && !engines.is_empty() {
        let names = engines.join(", ");
        lines.push(format!(
            "  {names}: here too (`hotcell doctor --engines` tests it)"
        ));
    }
    for engine in &report.engines {
        lines.push(format!("  {}: {}", engine.name, engine.words()));
    }
    lines.push(match report.isolation {
        Level::Full => "isolation: full".to_owned(),
        Level::Reduced => format!("isolation: reduced: {}", report.lacking.join(", ")),
        Level::None => "isolation: none: no sandbox can be made".to_owned(),
    });
    lines.join("\n") + "\n"
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Cell => "making a sandbox",
        Group::Inside => "a program in a sandbox",
        Group::Limits => "its limits",
        Group::Walls => "the walls (layers) of the sandbox",
    }
}
