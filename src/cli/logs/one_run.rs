//! One run whole.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::Value;

use super::{facts, plain, print, text};
use crate::records::{Kept, Reader, RecordsError, date};
use crate::request::bytes;
use crate::service::{CODE, STDERR, STDIN, STDOUT};

pub fn show(reader: &Reader, kept: &Kept, is_json: bool) -> Result<ExitCode, RecordsError> {
    let mut facts = facts(kept);
    let mut parts = Vec::new();
    for (title, name) in [
        ("code", CODE),
        ("stdin", STDIN),
        ("stdout", STDOUT),
        ("stderr", STDERR),
    ] {
        parts.push((title, text(reader, kept, name)?));
    }
    if kept.result.is_none() {
        let (printed, _) = reader.progress(&kept.id)?;
        parts[2].1 = String::from_utf8_lossy(&printed).into_owned();
    }
    if is_json {
        for (title, text) in parts {
            facts[title] = text.into();
        }
        print(&format!("{facts:#}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = heading(kept, &facts);
    for (title, text) in parts.iter().filter(|(_, text)| !text.is_empty()) {
        shown += &format!("--- {title}\n{}", plain(text));
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    let _ = io::stdout().write_all(shown.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn heading(kept: &Kept, facts: &Value) -> String {
    let (request, result) = (&facts["request"], &facts["result"]);
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let number = |value: &Value| value.as_u64().map(bytes);
    let mut rows = vec![
        ("run", kept.id.clone()),
        ("caller", kept.caller.clone()),
        ("started", date(kept.started)),
    ];
    let mut row =
        |name: &'static str, value: Option<String>| rows.extend(value.map(|it| (name, it)));
    row("status", Some(kept.status.clone()));
    let code = result["exit_code"].as_i64().filter(|code| *code != 0);
    row("exit code", code.map(|code| code.to_string()));
    row(
        "error",
        result["error"]["message"].as_str().map(str::to_owned),
    );
    row("session", kept.session.clone());
    let runtime = result["runtime"]["path"].as_str().unwrap_or_default();
    row(
        "language",
        kept.language.as_ref().map(|it| format!("{it} {runtime}")),
    );
    row(
        "took",
        result["duration_ms"].as_f64().map(|ms| format!("{ms} ms")),
    );
    row("memory", number(&result["usage"]["memory_peak_bytes"]));
    let limits = &request["limits"];
    row(
        "limits",
        number(&limits["memory"]).map(|memory| {
            let (time, processes, cpus) =
                (&limits["timeout"], &limits["processes"], &limits["cpus"]);
            format!("{time} s, {memory}, {processes} processes, {cpus} processors")
        }),
    );
    row(
        "network",
        request["network"]
            .as_str()
            .filter(|it| *it != "none")
            .map(str::to_owned),
    );
    row(
        "isolation",
        result["isolation"]["level"].as_str().map(str::to_owned),
    );
    for (name, list) in [
        ("argument", &request["args"]),
        ("variable", &request["variables"]),
        ("package", &result["packages"]["installed"]),
        ("note", &result["notes"]),
    ] {
        for item in list.as_array().into_iter().flatten() {
            row(name, Some(word(item)));
        }
    }
    for (name, list, key) in [
        ("input", &request["files"], "path"),
        ("left", &result["files"], "name"),
    ] {
        for file in list.as_array().into_iter().flatten() {
            let hash = file["sha256"].as_str().unwrap_or("not hashed");
            row(name, Some(format!("{} {hash}", word(&file[key]))));
        }
    }
    let rows = rows
        .iter()
        .map(|(name, value)| format!("{name:<10} {}\n", plain(value)));
    rows.collect()
}
