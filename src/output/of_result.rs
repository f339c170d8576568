//! The output of a program that ran.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    CompileOutput, ImageOutput, PackagesOutput, RunOutput, Unworded, UsageOutput, Verdict,
};
use crate::engine::RunResult;
use crate::plan::RunPlan;

impl RunOutput {
    pub fn of_result(plan: &RunPlan, result: RunResult) -> Unworded {
        let verdict = Verdict::of(plan, &result);
        let mut truncated = BTreeMap::new();
        for (name, stream) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
            if stream.is_truncated() {
                truncated.insert(name, stream.total);
            }
        }
        let image = result
            .stdout
            .picture()
            .map(|(mime_type, data)| ImageOutput {
                mime_type,
                bytes: data.len(),
                data,
            });
        let stdout = match image {
            Some(_) => String::new(),
            None => result.stdout.to_text(),
        };
        let output = Self {
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            stdout,
            image,
            stderr: result.stderr.to_text(),
            truncated,
            error: verdict.error,
            compile: result.compiled.as_ref().map(|compiled| CompileOutput {
                duration_ms: milliseconds(compiled.duration),
                cached: compiled.cached,
            }),
            packages: result.packages.as_ref().map(|packages| PackagesOutput {
                installed: packages.set.installed.clone(),
                lock: packages.set.lock.clone(),
                cached: packages.took.is_none(),
                duration_ms: packages.took.map(milliseconds),
            }),
            notes: plan
                .notes
                .iter()
                .cloned()
                .chain(result_notes(&result))
                .collect(),
            duration_ms: milliseconds(result.duration),
            usage: UsageOutput {
                cpu_ms: result.spent.cpu.map(milliseconds),
                memory_peak_bytes: result.spent.memory_peak,
            },
            value: result.value,
            network: result.network,
            isolation: Some(result.isolation),
            ..Self::empty(verdict.status, Some(plan))
        };
        let hint = verdict.hint;
        Unworded { output, hint }
    }
}

/// What was done for a program that its reader should know.
fn result_notes(result: &RunResult) -> Vec<String> {
    let installed = result.packages.iter().filter_map(|packages| {
        let names = packages.set.installed.iter();
        let names: Vec<String> = names.map(|name| name.replacen("==", " ", 1)).collect();
        let names = match names.len() {
            0..=8 => names.join(", "),
            more => format!("{} and {} more", names[..7].join(", "), more - 7),
        };
        let took = packages.took?.as_secs_f64();
        Some(format!("installed {names} in {took:.1} s"))
    });
    installed.collect()
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
