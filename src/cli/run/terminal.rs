//! Our terminal, while it is the program's.
//!
//! The program has a terminal of its own in its sandbox. Ours passes every key on to that one unread, and shows what comes from there as
//! it is: a program may do to it what any program in a terminal may. Whatever happens, it gets back the modes that it had.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cell::Terminal;
use crate::plan::RunPlan;
use crate::run::Screen;

/// Variables of ours that say what our terminal can do, which the program's can do then.
const VARIABLES: [&str; 3] = ["TERM", "COLORTERM", "NO_COLOR"];
const LONGEST: usize = 64;

/// A terminal that is taken back when this is dropped.
#[derive(Default)]
pub struct OwnTerminal(Arc<Mutex<Option<Termios>>>);

impl OwnTerminal {
    /// Ours, if there is one and it is ours to give: one in the background would stop us.
    pub fn find() -> Option<Self> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let group = tcgetpgrp(io::stdin()).ok()?;
        (is_terminal && group == getpgrp()).then(Self::default)
    }

    /// Has the plan's program started at a terminal like this one.
    pub fn plan_for(&self, plan: &mut RunPlan) {
        let (rows, columns) = size();
        plan.launch.terminal = Some(Terminal {
            rows,
            columns,
            has_stderr: io::stderr().is_terminal(),
        });
        let own = VARIABLES.iter().filter_map(|name| {
            let value = std::env::var(name).ok()?;
            let is_plain = value.len() <= LONGEST && value.bytes().all(|it| it.is_ascii_graphic());
            is_plain.then(|| ((*name).to_owned(), value))
        });
        let launch = plan.launch.clone().default_env(own);
        plan.launch = launch;
    }

    /// What a run needs to know of it.
    pub fn screen(&self) -> Screen {
        let (changed, sizes) = watch::channel(size());
        if let Ok(mut resized) = signal(SignalKind::window_change()) {
            // Ends with the runtime, or when nobody wants to know any more.
            tokio::spawn(async move {
                while resized.recv().await.is_some() && changed.send(size()).is_ok() {}
            });
        }
        let before = self.0.clone();
        let give = move || {
            let Ok(modes) = tcgetattr(io::stdin()) else {
                return;
            };
            let mut raw = modes.clone();
            raw.make_raw();
            *before.lock().unwrap_or_else(PoisonError::into_inner) = Some(modes);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        };
        Screen {
            give: Box::new(give),
            sizes,
        }
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(modes) = before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &modes);
        }
    }
}

/// Rows and columns.
fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}
