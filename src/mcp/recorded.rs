//! What is said of a job that this process knows nothing of: what an earlier one has recorded.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::jobs::{Rendered, result};
use super::run_tool::separate;
use crate::caller::Caller;
use crate::records::{Kept, Reader, RecordsError};
use crate::service::{STDERR, STDOUT, Service};

/// Longer than any id of ours.
const LONGEST_ID: usize = 64;
/// How much of its newest output is told.
const MOST: usize = 256 << 10;
/// What a caller acts on.
const TOLD: [&str; 9] = [
    "status",
    "exit_code",
    "signal",
    "session",
    "value",
    "displays",
    "files",
    "error",
    "notes",
];

/// The record of a run of this caller, if there is one, and what is said of it.
pub async fn recorded(
    service: &Arc<Service>,
    caller: &Caller,
    id: &str,
    since: u64,
) -> Option<(Kept, Rendered)> {
    if id.is_empty() || id.len() > LONGEST_ID {
        return None;
    }
    let records = service.records()?.clone();
    let (caller, id) = (caller.clone(), id.to_owned());
    let look_up = move || records.look_up(|reader| tell(reader, &caller, &id, since));
    tokio::task::spawn_blocking(look_up).await.ok()??
}

fn tell(
    reader: &Reader,
    caller: &Caller,
    id: &str,
    since: u64,
) -> Result<Option<(Kept, Rendered)>, RecordsError> {
    let Some(kept) = reader.of_caller(caller, id)? else {
        return Ok(None);
    };
    if kept.result.is_none() {
        let (bytes, next) = reader.progress(id)?;
        let told = unfinished(&kept, &bytes, (since, next));
        return Ok(Some((kept, told)));
    }
    let text = |name: &str| -> Result<String, RecordsError> {
        let bytes = reader.content(id, name)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let told = ended(&kept, text(STDOUT)?, text(STDERR)?);
    Ok(Some((kept, told)))
}

/// One that goes on elsewhere, or was lost with its server.
fn unfinished(kept: &Kept, bytes: &[u8], (since, next): (u64, u64)) -> Rendered {
    let start = next - bytes.len() as u64;
    let from = since.saturating_sub(start).min(bytes.len() as u64) as usize;
    let from = from.max(bytes.len().saturating_sub(MOST));
    let stdout = String::from_utf8_lossy(&bytes[from..]).into_owned();
    let mut text = stdout.clone();
    separate(&mut text);
    let mut facts =
        json!({ "status": kept.status, "job": kept.id, "stdout": stdout, "next": next });
    let is_lost = kept.status == "lost";
    if is_lost {
        let message = "the server that ran it has ended; its output until then was recorded";
        facts["error"] = json!({ "kind": "lost", "message": message });
        text += &format!("[lost: {message}]");
    } else {
        text += "[still running, in another server]";
    }
    result(text, facts, is_lost)
}

fn ended(kept: &Kept, stdout: String, stderr: String) -> Rendered {
    let recorded = kept.result.as_deref().unwrap_or_default();
    let recorded: Value = serde_json::from_str(recorded).unwrap_or_default();
    let mut facts = Map::from_iter([("status".to_owned(), kept.status.as_str().into())]);
    for name in TOLD {
        match recorded.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Number(code)) if name == "exit_code" && code.as_i64() == Some(0) => {}
            Some(value) => drop(facts.insert(name.to_owned(), value.clone())),
        }
    }
    let mut text = stdout.clone();
    facts.insert("stdout".to_owned(), stdout.into());
    if !stderr.is_empty() {
        separate(&mut text);
        text += &format!("[stderr]\n{stderr}");
        facts.insert("stderr".to_owned(), stderr.into());
    }
    if let Some(message) = recorded["error"]["message"].as_str() {
        separate(&mut text);
        text += &format!("[{}: {message}]", kept.status);
    }
    result(text, facts.into(), kept.status != "ok")
}
