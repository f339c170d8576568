//! The program's standard streams, which are ours.
//!
//! The thread that watches the program never waits for whoever reads our output or writes our
//! input: where that may take time, a thread of its own does.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::cell::CellError;
use crate::cli::signals::{Interrupts, told_to_end};
use crate::cli::{print_error, print_note, show_progress};
use crate::engine::StartError;
use crate::media_type::picture_kind;
use crate::run::{Interrupt, OutputEvent, Stdin, Stream};
use crate::service::{Observer, Output};

/// Passes our standard input on as it comes.
///
/// Never the file descriptor itself: a program must not hold anything of our terminal.
pub fn own_stdin() -> Result<Stdin, StartError> {
    let null = rustix::fs::makedev(1, 3);
    if rustix::fs::fstat(io::stdin()).is_ok_and(|stdin| stdin.st_rdev == null) {
        return Ok(Stdin::Empty);
    }
    let (pieces, received) = mpsc::channel(4);
    // The thread may wait in a read for ever; it ends with the process.
    start_thread(move || {
        let mut stdin = io::stdin().lock();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    if pieces.blocking_send(buffer[..read].to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(Stdin::Stream(received))
}

fn start_thread(work: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
    let started = thread::Builder::new().spawn(work);
    started
        .map(drop)
        .map_err(|error| CellError::Thread(error).into())
}

/// Whether the run is to be stopped: by a signal, or since nobody reads its output.
#[derive(Clone)]
pub struct Stop {
    stopped: watch::Receiver<bool>,
    unread: Arc<Notify>,
    is_unread: Arc<AtomicBool>,
}

impl Stop {
    /// Catches the signals from here on. The first Ctrl-C is the program's, if one runs.
    pub fn catch(interrupt: Interrupt) -> Self {
        let unread = Arc::new(Notify::new());
        let is_unread = Arc::new(AtomicBool::new(false));
        let (no_reader, nobody_reads) = (unread.clone(), is_unread.clone());
        let (mut interrupts, told) = (Interrupts::catch(), told_to_end());
        let (stop, stopped) = watch::channel(false);
        // Ends with the runtime.
        tokio::spawn(async move {
            let twice = async {
                interrupts.next().await;
                if interrupt.send() {
                    interrupts.next().await;
                }
            };
            tokio::select! {
                () = twice => {}
                () = told => {}
                () = no_reader.notified() => nobody_reads.store(true, Ordering::Relaxed),
            }
            let _ = stop.send(true);
        });
        Self {
            stopped,
            unread,
            is_unread,
        }
    }

    /// Whether it was since nobody reads its output.
    pub fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    pub async fn stopped(mut self) {
        if self.stopped.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Writes a program's output to our own streams, or lets go of it.
pub struct Printer {
    pub prints: bool,
    pub stop: Stop,
}

impl Observer for Printer {
    type Heard = ();

    async fn hear(self, output: Output) {
        if !self.prints {
            return;
        }
        // All of the output, however slow its reader is, unless we are told to stop.
        tokio::select! {
            () = print(output, &self.stop.unread) => {}
            () = self.stop.clone().stopped() => {}
        }
    }
}

/// Writes output as it comes, until there is none or nobody reads it.
async fn print(mut output: Output, unread: &Notify) {
    while let Some(event) = output.recv().await {
        if let Some(kind) = unreadable(&event) {
            let hint = "Send it to a file: `hotcell run ... > picture`.";
            let message = format!("the program prints a picture ({kind})");
            print_error(&message, Some(hint));
            while output.recv().await.is_some() {}
            return;
        }
        if !can_write_at_once(&event) {
            let (done, printed) = oneshot::channel();
            // The thread may wait in a write for ever; it ends with the process.
            let work = move || drop(done.send(print_slowly(event, output)));
            if start_thread(work).is_err() || matches!(printed.await, Ok(Err(_))) {
                unread.notify_one();
            }
            return;
        }
        if write(&event).is_err() {
            unread.notify_one();
            return;
        }
    }
}

/// The kind of a picture that a terminal would take for commands.
fn unreadable(event: &OutputEvent) -> Option<&'static str> {
    let kind = picture_kind(&event.bytes).filter(|_| event.stream == Stream::Stdout);
    kind.filter(|_| io::stdout().is_terminal())
}

/// Whether a write will not wait for a reader: this thread has a program to watch.
fn can_write_at_once(event: &OutputEvent) -> bool {
    // A pipe that polls writable has room for so much.
    const PIPE_BUF: usize = 4096;
    let ready = |fd: BorrowedFd<'_>| {
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1))
    };
    event.bytes.len() <= PIPE_BUF
        && match event.stream {
            Stream::Stdout => ready(io::stdout().as_fd()),
            Stream::Stderr | Stream::Notice | Stream::Progress => ready(io::stderr().as_fd()),
        }
}

fn print_slowly(first: OutputEvent, mut output: Output) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(event) = next {
        write(&event)?;
        next = output.blocking_recv();
    }
    Ok(())
}

/// Writes a piece of output, but no picture to a terminal.
pub fn show(event: &OutputEvent) -> io::Result<()> {
    match unreadable(event) {
        Some(_) => Ok(()),
        None => write(event),
    }
}

fn write(event: &OutputEvent) -> io::Result<()> {
    match event.stream {
        Stream::Stdout => write_all(&mut io::stdout().lock(), &event.bytes),
        Stream::Stderr => write_all(&mut io::stderr().lock(), &event.bytes),
        Stream::Notice => {
            show_progress(b"");
            print_note(&String::from_utf8_lossy(&event.bytes));
            Ok(())
        }
        Stream::Progress => {
            show_progress(&event.bytes);
            Ok(())
        }
    }
}

fn write_all(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}
