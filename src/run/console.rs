//! Whoever sits before a program: the interrupts that they send it, and their terminal if it becomes the program's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep};

use super::Stdin;
use crate::cell::TerminalEnd;

/// What a person at a console has to do with a program.
pub struct Console {
    pub interrupt: Interrupt,
    /// Their terminal, for a launch with one.
    pub screen: Option<Screen>,
}

/// A terminal that becomes the program's.
pub struct Screen {
    /// Gives it to the program, from its start on. Whoever made this takes it back.
    pub give: Box<dyn FnOnce() + Send + Sync>,
    /// Rows and columns, as they change.
    pub sizes: watch::Receiver<(u16, u16)>,
}

/// Interrupts a program while one runs.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    listens: AtomicBool,
    asked: Notify,
}

impl Interrupt {
    /// Has SIGINT sent to the program; false if none runs.
    pub fn send(&self) -> bool {
        let listens = self.0.listens.load(Ordering::Relaxed);
        if listens {
            self.0.asked.notify_one();
        }
        listens
    }

    pub(super) fn listen(&self) {
        self.0.listens.store(true, Ordering::Relaxed);
    }

    pub(super) async fn asked(&self) {
        self.0.asked.notified().await;
    }
}

/// What is typed before the program reads it. Nobody types so much, and what is pasted waits.
const MOST_TYPED: usize = 1 << 20;

/// Passes what is typed on to the program's terminal, until it is interrupted twice in a row.
///
/// A program may read the key itself (an editor, say): then it is one like any other.
pub async fn type_in(terminal: TerminalEnd, stdin: Stdin, ended: Arc<Notify>) {
    let mut pieces = match stdin {
        Stdin::Stream(pieces) => pieces,
        Stdin::Empty => mpsc::channel(1).1,
        Stdin::Bytes(bytes) => {
            let (sender, pieces) = mpsc::channel(1);
            let _ = sender.try_send(bytes);
            pieces
        }
    };
    let mut typed = Vec::new();
    let mut interrupts = 0;
    let mut is_open = true;
    while is_open || !typed.is_empty() {
        // Both at once: a program that reads nothing must not keep us from hearing the key.
        tokio::select! {
            piece = pieces.recv(), if is_open && typed.len() < MOST_TYPED => {
                let Some(piece) = piece else {
                    is_open = false;
                    continue;
                };
                let key = terminal.interrupt_key();
                for byte in &piece {
                    interrupts = if key == Some(*byte) { interrupts + 1 } else { 0 };
                    if interrupts == 2 {
                        ended.notify_one();
                    }
                }
                typed.extend(piece);
            }
            written = terminal.write(&typed), if !typed.is_empty() => match written {
                Ok(written) => drop(typed.drain(..written)),
                Err(_) => return,
            },
        }
    }
}

/// Keeps the terminal at the size that its user sees.
pub async fn follow_size(terminal: TerminalEnd, mut sizes: watch::Receiver<(u16, u16)>) {
    while sizes.changed().await.is_ok() {
        let size = *sizes.borrow_and_update();
        terminal.resize(size);
    }
}

/// How long the reader of a program's terminal may take when the program has ended.
const LATE: Duration = Duration::from_secs(10);

/// Waits until all is read that a program has written to its terminal: what is unread when the cell ends is lost.
pub async fn until_read(terminal: &TerminalEnd) {
    let end = Instant::now() + LATE;
    while terminal.has_unread() && Instant::now() < end {
        sleep(Duration::from_millis(1)).await;
    }
}
