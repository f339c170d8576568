//! The one way to log: `tracing` events, written to standard error if `HOTCELL_LOG` names a level.
//!
//! It owns the level and how a line looks. Unless somebody asks nothing is set up, and an event costs one load of an
//! atomic. Standard output is never written to: it belongs to programs and to the protocol.
//!
//! SECURITY: an event says what we do, to which thing, and how long that took. It never has a secret, a variable's value,
//! a program, its arguments or its output.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const VARIABLE: &str = "HOTCELL_LOG";

/// Begins to log, if the environment says so. A word that is no level is told and changes nothing.
pub fn start() {
    let Some(word) = std::env::var_os(VARIABLE).filter(|word| !word.is_empty()) else {
        return;
    };
    let Ok(level) = word.to_string_lossy().parse::<LevelFilter>() else {
        eprintln!(
            "hotcell: {VARIABLE} is no level; there are off, error, warn, info, debug and trace"
        );
        return;
    };
    start_at(level);
}

/// The same at the level of another server's variable, which knows `warning` and `critical` too. Ours comes first.
pub fn start_like(word: &str) {
    if std::env::var_os(VARIABLE).is_some_and(|word| !word.is_empty()) {
        return;
    }
    match word.trim().to_ascii_lowercase().as_str() {
        "warning" => start_at(LevelFilter::WARN),
        "critical" | "fatal" => start_at(LevelFilter::ERROR),
        word => start_at(word.parse().unwrap_or(LevelFilter::OFF)),
    }
}

fn start_at(level: LevelFilter) {
    if level != LevelFilter::OFF {
        let started = Instant::now();
        // Only a library's own program can have set another one, and then that one counts.
        let _ = tracing::subscriber::set_global_default(Log { level, started });
    }
}

struct Log {
    level: LevelFilter,
    started: Instant,
}

impl Subscriber for Log {
    /// Our own events alone: those of libraries may say what a program sent.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let mut path = metadata.target().split("::");
        path.next() == Some("hotcell") && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{:10.3}", self.started.elapsed().as_secs_f64()));
        let metadata = event.metadata();
        let _ = write!(line.0, " {:5} {}:", metadata.level(), metadata.target());
        event.record(&mut line);
        line.0.push('\n');
        // One write for a line, so that those of several threads do not mix. Nobody can be told that it failed.
        let _ = std::io::stderr().write_all(line.0.as_bytes());
    }

    // We have no spans: a run is known by its fields.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// ` message name=value name="text"`, without a character that a terminal would obey.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "message" => format!(" {value:?}"),
            name => format!(" {name}={value:?}"),
        };
        for character in text.chars() {
            match character.is_control() {
                true => self.0.extend(character.escape_default()),
                false => self.0.push(character),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_message_and_fields_and_no_control_character() {
        struct Seen(std::sync::Mutex<String>);
        impl Subscriber for Seen {
            fn enabled(&self, _: &Metadata<'_>) -> bool {
                true
            }
            fn new_span(&self, _: &Attributes<'_>) -> Id {
                Id::from_u64(1)
            }
            fn record(&self, _: &Id, _: &Record<'_>) {}
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn event(&self, event: &Event<'_>) {
                let mut line = Line(String::new());
                event.record(&mut line);
                *self.0.lock().unwrap() = line.0;
            }
            fn enter(&self, _: &Id) {}
            fn exit(&self, _: &Id) {}
        }
        let seen = std::sync::Arc::new(Seen(std::sync::Mutex::default()));
        tracing::subscriber::with_default(seen.clone(), || {
            tracing::info!(runs = 2, name = "a\u{1b}[2J", "\rended");
        });
        let line = seen.0.lock().unwrap();
        assert_eq!(*line, r#" \rended runs=2 name="a\u{1b}[2J""#);
    }
}
