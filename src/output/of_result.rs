//! The output of a program that ran.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    CompileOutput, FileOutput, ImageOutput, PackagesOutput, RunOutput, Unworded, UsageOutput,
    Verdict,
};
use crate::cell::{ChangedFile, Changes};
use crate::display::Displayed;
use crate::engine::RunResult;
use crate::packages::Installed;
use crate::plan::RunPlan;
use crate::request::{Ecosystem, join_locks};

impl RunOutput {
    pub fn of_result(plan: &RunPlan, result: RunResult) -> Unworded {
        let verdict = Verdict::of(plan, &result);
        let mut total_bytes = BTreeMap::new();
        for (name, stream) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
            if stream.is_truncated() {
                total_bytes.insert(name, stream.total);
            }
        }
        let notes = plan.notes.iter().cloned();
        let notes = notes.chain(result_notes(&result)).collect();
        let (mut pictures, is_one) = result.stdout.pictures();
        let image = pictures.pop_if(|_| is_one);
        let image = image.map(|(mime_type, data)| ImageOutput {
            mime_type,
            bytes: data.len(),
            data,
        });
        let stdout = match image {
            Some(_) => String::new(),
            None => result.stdout.to_text(),
        };
        let packages = packages(&result, plan);
        let mut displays = result.shown.displays;
        displays.extend(pictures.into_iter().filter_map(Displayed::printed));
        let start = if result.was_waiting { "warm" } else { "cold" };
        let mut output = Self {
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            stdout,
            files: result.changes.files.iter().map(file).collect(),
            deleted: deleted(&result.changes),
            image,
            stderr: result.stderr.to_text(),
            truncated: !total_bytes.is_empty(),
            total_bytes,
            error: verdict.error,
            compile: result.compiled.as_ref().map(|compiled| CompileOutput {
                duration_ms: milliseconds(compiled.duration),
                cached: compiled.cached,
            }),
            packages,
            notes,
            duration_ms: milliseconds(result.duration),
            usage: UsageOutput {
                cpu_ms: result.spent.cpu.map(milliseconds),
                memory_peak_bytes: result.spent.memory_peak,
            },
            network: result.network,
            calls: result.calls,
            value: result.shown.value,
            page: result.shown.page,
            shell_code: verdict.shell_code,
            displays,
            saved: result.shown.saved,
            isolation: Some(result.isolation),
            ..Self::empty(verdict.status, Some(plan))
        };
        if let Some(runtime) = &mut output.runtime {
            runtime.start = Some(start);
        }
        let hint = verdict.hint;
        Unworded { output, hint }
    }
}

fn file(changed: &ChangedFile) -> FileOutput {
    FileOutput {
        name: changed.path.to_string(),
        size: changed.size,
        media_type: changed.media_type,
        sha256: changed.content.as_ref().map(|it| it.sha256.clone()),
        uri: None,
        diff: changed.diff.clone(),
    }
}

/// All packages that a program had, with one lock.
fn packages(result: &RunResult, plan: &RunPlan) -> Option<PackagesOutput> {
    let own = plan.packages_from.zip(result.packages.as_deref());
    let lent = result.lent.iter().map(|it| (it.from, &*it.installed));
    let all: Vec<(Ecosystem, &Installed)> = own.into_iter().chain(lent).collect();
    let took = all.iter().filter_map(|(_, it)| it.took);
    let took = took.reduce(|one, other| one + other);
    let locks = all.iter().map(|(from, it)| (*from, it.set.lock.clone()));
    (!all.is_empty()).then(|| PackagesOutput {
        installed: all
            .iter()
            .flat_map(|(_, it)| it.set.installed.clone())
            .collect(),
        lock: join_locks(
            locks.collect(),
            plan.packages_from.unwrap_or(Ecosystem::USUAL),
        ),
        cached: took.is_none(),
        duration_ms: took.map(milliseconds),
    })
}

/// Not without end: the list is for a reader.
fn deleted(changes: &Changes) -> Vec<String> {
    let paths = changes.deleted.iter().take(50);
    paths.map(ToString::to_string).collect()
}

/// What was done for a program that its reader should know.
fn result_notes(result: &RunResult) -> Vec<String> {
    let lent = result.lent.iter().map(|it| &it.installed);
    let installed = result.packages.iter().chain(lent).filter_map(|packages| {
        let names = packages.set.installed.iter();
        let names: Vec<String> = names.map(|name| name.replacen("==", " ", 1)).collect();
        let names = match names.len() {
            0..=8 => names.join(", "),
            more => format!("{} and {} more", names[..7].join(", "), more - 7),
        };
        let took = packages.took?.as_secs_f64();
        Some(format!("installed {names} in {took:.1} s"))
    });
    let files_left_out = Some(result.changes.left_out).filter(|count| *count > 0);
    let files_left_out = files_left_out.map(|count| {
        format!("{count} more of the files that it left are too many, too deep or unreadable")
    });
    let left_out = match result.shown.left_out {
        0 => None,
        1 => Some(
            "one thing that it showed is left out: it is too large or not what its name says"
                .to_owned(),
        ),
        more => Some(format!(
            "{more} things that it showed are left out: they are too many, too large or not what their names say"
        )),
    };
    installed.chain(files_left_out).chain(left_out).collect()
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
