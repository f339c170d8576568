//! A result as mcp-server-code-execution-mode tells it: compact text, or one block of TOON. No line is left out.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::output::{RunOutput, Status};

pub struct Payload {
    status: &'static str,
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    servers: Vec<String>,
    seconds: Option<u64>,
    error: String,
    summary: String,
    value: Option<Value>,
}

impl Payload {
    pub fn of(output: &RunOutput, servers: Vec<String>, seconds: u64) -> Self {
        let has_output = !output.stdout.is_empty() || !output.stderr.is_empty();
        let (status, error, summary) = match (output.status, output.exit_code) {
            (Status::Ok, _) if has_output => ("success", String::new(), "Success".to_owned()),
            (Status::Ok, _) => ("success", String::new(), "Success (no output)".to_owned()),
            (Status::Timeout, _) => (
                "timeout",
                format!("Execution timed out after {seconds}s"),
                format!("Timeout: execution exceeded {seconds}s"),
            ),
            (Status::Failed, Some(code)) => {
                let error = format!("Sandbox exited with code {code}");
                let summary = format!("Sandbox error: {error}");
                ("error", error, summary)
            }
            _ => {
                let error = output.error.as_ref();
                let error =
                    error.map_or_else(|| output.status.to_string(), |it| of_engine(&it.message));
                ("error", error, "Unexpected failure".to_owned())
            }
        };
        Self {
            status,
            exit_code: output.exit_code,
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            servers,
            seconds: Some(seconds),
            error,
            summary,
            value: output.value.clone(),
        }
    }

    /// Arguments that do not fit.
    pub fn invalid(message: &str) -> Self {
        Self {
            status: "validation_error",
            ..Self::refused(message)
        }
    }

    /// Something that was not run.
    pub fn refused(message: &str) -> Self {
        Self {
            status: "error",
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
            servers: Vec::new(),
            seconds: None,
            error: message.to_owned(),
            summary: message.to_owned(),
            value: None,
        }
    }

    pub fn is_success(&self) -> bool {
        self.status == "success"
    }

    /// What is not empty.
    pub fn compact(&self) -> Map<String, Value> {
        let lines = |text: &str| -> Value { text.lines().collect() };
        let failed = |value: Value| match self.is_success() {
            true => Value::Null,
            false => value,
        };
        let summary = match self.stdout.is_empty() && self.value.is_none() {
            true => self.summary.as_str(),
            false => "",
        };
        let all = [
            ("status", failed(self.status.into())),
            ("exitCode", failed(self.exit_code.into())),
            ("stdout", lines(&self.stdout)),
            ("stderr", lines(&self.stderr)),
            ("servers", json!(self.servers)),
            ("timeoutSeconds", self.seconds.into()),
            ("error", self.error.as_str().into()),
            // What that server did not have: what the last expression came to.
            ("value", self.value.clone().unwrap_or_default()),
            ("summary", summary.into()),
        ];
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        let some = all.into_iter().filter(|(_, value)| !is_empty(value));
        some.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |part: &str| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text += part;
        };
        if !self.is_success() {
            add(&format!("status: {}", self.status));
        }
        if let Some(code) = self.exit_code.filter(|code| *code != 0) {
            add(&format!("exit: {code}"));
        }
        if !self.stdout.is_empty() {
            add(&self.stdout);
        }
        if !self.stderr.is_empty() {
            add("stderr:");
            add(&self.stderr);
        }
        match &self.value {
            Some(Value::String(value)) => add(&format!("value: {value}")),
            Some(value) => add(&format!("value: {value}")),
            None => {}
        }
        if !self.error.is_empty() {
            add(&format!("error: {}", self.error));
        }
        match text.is_empty() {
            true => self.summary.clone(),
            false => text,
        }
    }

    /// The same payload in the token-oriented notation: a name and a value in each line, lists with their length.
    pub fn toon(&self) -> String {
        let mut text = "```toon\n".to_owned();
        let mut fields = self.compact();
        fields.entry("status").or_insert_with(|| self.status.into());
        for (name, value) in &fields {
            let _ = match value {
                Value::Array(items) => {
                    let items: Vec<String> = items.iter().map(toon_value).collect();
                    writeln!(text, "{name}[{}]: {}", items.len(), items.join(","))
                }
                value => writeln!(text, "{name}: {}", toon_value(value)),
            };
        }
        text + "```"
    }
}

const NO_ENGINE: &str = "No container runtime found. Install podman or rootless docker and set MCP_BRIDGE_RUNTIME if multiple runtimes are available.";
/// What that server says of container engines, before what we do.
const ENGINES: [(&str, &str); 6] = [
    ("no container engine was found", NO_ENGINE),
    ("`podman` was not found", NO_ENGINE),
    ("`docker` was not found", NO_ENGINE),
    (
        "failed to initialize Podman machine",
        "Failed to initialize Podman machine",
    ),
    (
        "failed to start Podman machine",
        "Failed to start Podman machine",
    ),
    (
        "could not start a container: ",
        "Container runtime is unavailable",
    ),
];

fn of_engine(message: &str) -> String {
    let theirs = ENGINES.iter().find(|(ours, _)| message.contains(ours));
    theirs.map_or_else(
        || message.to_owned(),
        |(_, theirs)| format!("{theirs} ({message})"),
    )
}

/// A value: a text stands in quotes if it could be read as anything else.
fn toon_value(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let is_other = matches!(text.as_str(), "" | "true" | "false" | "null")
        || text.parse::<f64>().is_ok()
        || text.starts_with('-')
        || text.trim() != text;
    let has_marks = text
        .chars()
        .any(|it| it.is_control() || ",:\"\\[]{}#".contains(it));
    match is_other || has_marks {
        true => value.to_string(),
        false => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(stdout: &str) -> Payload {
        Payload {
            status: "success",
            exit_code: Some(0),
            stdout: stdout.to_owned(),
            seconds: Some(30),
            ..Payload::refused("")
        }
    }

    #[test]
    fn no_line_is_left_out_in_any_form() {
        let payload = payload("a\n\n()\nb\n");
        assert_eq!(payload.text(), "a\n\n()\nb\n");
        assert_eq!(
            Value::from(payload.compact()),
            json!({ "stdout": ["a", "", "()", "b"], "timeoutSeconds": 30 })
        );
        assert_eq!(
            payload.toon(),
            "```toon\nstdout[4]: a,\"\",(),b\ntimeoutSeconds: 30\nstatus: success\n```"
        );
    }

    #[test]
    fn a_text_that_could_be_something_else_stands_in_quotes() {
        for (text, expected) in [
            ("plain words", "plain words"),
            ("1.5", "\"1.5\""),
            ("true", "\"true\""),
            ("a,b", "\"a,b\""),
            ("x: y", "\"x: y\""),
            (" x", "\" x\""),
        ] {
            assert_eq!(toon_value(&text.into()), expected);
        }
    }
}
