//! A result as the text that code-runner-mcp would answer with.

use super::settings::{Kind, Settings};
use crate::error_kind::ErrorKind;
use crate::output::{RunOutput, Status};

/// Both streams, what went wrong, and what to do about it.
pub fn text(output: &RunOutput, kind: Kind, settings: &Settings) -> String {
    let mut text = output.stdout.clone();
    for line in output.stderr.lines() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("[stderr] {line}\n");
    }
    let Some(error) = &output.error else {
        if text.trim().is_empty() {
            text = "(no output)".to_owned();
            if kind == Kind::JavaScript {
                text += "\n\nTip: use console.log() to see a value.";
            }
        }
        return text + &refusals(output, kind);
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += &match output.status {
        Status::Timeout => format!("[err][{}] timeout", kind.short()),
        _ => format!("[err][{}] {}", kind.short(), error.message),
    };
    let denied = [
        "PermissionError",
        "NotCapable",
        "EACCES",
        "Permission denied",
        "Read-only file system",
        "EROFS",
    ];
    let is_denied = denied.iter().any(|word| output.stderr.contains(word));
    let absent = ["FileNotFoundError", "ENOENT", "No such file or directory"];
    let absent = absent.iter().any(|word| output.stderr.contains(word));
    if error.kind == ErrorKind::Syntax {
        text += "\nFix: in JSON, write a line break as \\n, a quote as \\\" and a backslash as \\\\; check quotes and indentation.";
    } else if is_denied || absent {
        text += &format!(
            "\nFix: only these folders exist for the program to use: {}.",
            settings.writable(kind)
        );
    }
    if let Some(hint) = &error.hint {
        text += &format!("\nFix: {hint}");
    }
    text + &refusals(output, kind)
}

/// Hosts that were refused, which a program may not have reported.
fn refusals(output: &RunOutput, kind: Kind) -> String {
    let lines = output.refusals(kind.surface()).into_iter();
    lines.map(|line| format!("\n[note] {line}")).collect()
}
