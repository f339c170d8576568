//! What is going on while a runtime is fetched, and a bar for a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Something that people may want to see.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Another process is adding a runtime.
    Waiting,
    /// A file begins to arrive.
    Fetching {
        recipe: &'a str,
        version: &'a str,
        registry: &'a str,
        file: &'a str,
        size: Option<u64>,
    },
    /// So much of it is there.
    Arrived(u64),
    Unpacking {
        recipe: &'a str,
    },
    /// A recipe could not be had, and there is another.
    Instead {
        failed: &'a str,
        why: &'a str,
        next: &'a str,
    },
}

/// How often a bar is drawn again.
const PACE: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

/// Tells events on standard error: as a bar on a terminal, else one line for each file.
pub struct Bar {
    terminal: bool,
    size: u64,
    first: Option<(Instant, u64)>,
    drawn: Option<Instant>,
}

impl Bar {
    pub fn new() -> Self {
        Self {
            terminal: io::stderr().is_terminal(),
            size: 0,
            first: None,
            drawn: None,
        }
    }

    pub fn tell(&mut self, event: Event<'_>) {
        match event {
            Event::Waiting => {
                self.line("waiting for another hotcell that is adding a runtime");
            }
            Event::Fetching {
                recipe,
                version,
                registry,
                file,
                size,
            } => {
                (self.size, self.first) = (size.unwrap_or(0), None);
                let size = size.map_or(String::new(), |size| format!(", {}", megabytes(size)));
                self.line(&format!(
                    "fetching {recipe} {version} from {registry}: {file}{size}"
                ));
            }
            Event::Arrived(bytes) => self.draw(bytes),
            Event::Unpacking { recipe } => self.line(&format!("unpacking {recipe}")),
            Event::Instead { failed, why, next } => self.line(&format!(
                "could not fetch `{failed}`: {why}; trying `{next}` instead"
            )),
        }
    }

    fn draw(&mut self, bytes: u64) {
        let now = Instant::now();
        let (start, already) = *self.first.get_or_insert((now, bytes));
        let soon = self.drawn.is_some_and(|drawn| now - drawn < PACE);
        if !self.terminal || (soon && bytes < self.size) {
            return;
        }
        self.drawn = Some(now);
        let speed = (bytes - already) as f64 / (now - start).as_secs_f64().max(0.001);
        let text = format!("  {}  {}/s", bar(bytes, self.size), megabytes(speed as u64));
        // Nobody left to tell is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }

    /// A line of its own, in the place of the bar.
    fn line(&mut self, text: &str) {
        let clear = if self.drawn.take().is_some() {
            "\r\x1b[K"
        } else {
            ""
        };
        let _ = writeln!(io::stderr(), "{clear}hotcell: {text}");
    }
}

/// So much of so much, to be seen at a glance.
pub fn bar(bytes: u64, size: u64) -> String {
    let part = (bytes as f64 / size.max(1) as f64).clamp(0.0, 1.0);
    let full = (part * WIDTH as f64) as usize;
    format!(
        "[{}{}] {:3.0} %  {} of {}",
        "=".repeat(full),
        " ".repeat(WIDTH - full),
        part * 100.0,
        megabytes(bytes),
        megabytes(size),
    )
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
