//! The transport over standard input and output: one message on a line.
//!
//! Either may be a file, a terminal or a pipe, and a pipe that is shared must not be made
//! non-blocking. So each is asked before it is used; what would wait, waits in a thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::change::Change;
use super::context::Outbox;
use super::era::Transport;
use super::message::{self, Fault, Garbled, IdSearch, Message};
use super::server::{Peer, Server};
use super::session::Session;
use crate::caller::Caller;
use crate::memory_budget::Hold;

/// The longest line that is read; of a longer one the rest is passed over.
const LONGEST_LINE: usize = 16 << 20;
/// How long what was already said may take to be written when all is over.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Takes standard output for the protocol: from here on, what anything else in
/// this process prints goes to standard error.
pub fn take_stdout() -> io::Result<File> {
    let ours: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(ours.into())
}

/// Standard input, unbuffered.
pub fn stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Serves until `input` ends, nobody reads `output` any more, or `stop` does.
///
/// Every call that is then still open is ended, and its sandbox with it.
pub async fn serve(
    server: &Arc<Server>,
    input: File,
    output: File,
    stop: impl Future<Output = ()>,
) {
    let (out, outgoing) = Outbox::new(64);
    let (lines, mut inbox) = mpsc::channel(64);
    let writer = tokio::spawn(write(output, outgoing));
    let (end, ended) = watch::channel(false);
    // It may wait in a read until the client ends, perhaps longer than we do.
    tokio::spawn(async move {
        // What cannot be read any more has ended.
        let _ = read(input, lines).await;
        end.send_replace(true);
    });

    let peer = Peer {
        caller: Caller::local(),
        session: Arc::new(Session::default()),
        transport: Transport::Stdio,
        out,
        held: Arc::default(),
    };
    let mut calls = JoinSet::new();
    let mut changes = server.changes();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            line = inbox.recv() => {
                let Some(line) = line else {
                    break;
                };
                // An answer waits for a client that does not read, but not for one
                // that has ended and left its pipe open.
                tokio::select! {
                    () = take(server, line, &peer, &mut calls) => {}
                    () = given_up(ended.clone()) => break,
                    () = &mut stop => break,
                }
            }
            change = changes.recv() => if let Ok(change) = change {
                send_change(&peer, &change).await;
            },
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            () = peer.out.closed() => break,
            () = &mut stop => break,
        }
    }
    calls.shutdown().await;
    drop(peer);
    let _ = tokio::time::timeout(LAST_WORDS, writer).await;
}

/// Waits for the end of input, and then for what was said to be written.
async fn given_up(mut ended: watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
    tokio::time::sleep(LAST_WORDS).await;
}

async fn take(server: &Arc<Server>, line: Line, peer: &Peer, calls: &mut JoinSet<()>) {
    let read = match line {
        Line::Whole(bytes, hold) if message::is_batch(&bytes) => {
            return take_batch(server, bytes, hold, peer, calls).await;
        }
        Line::Whole(bytes, hold) => message::read(bytes, hold, message::parse).await,
        Line::Refused(garbled) => Err(garbled),
    };
    let (message, hold) = match read {
        Ok(read) => read,
        Err(garbled) => return peer.out.send(garbled.to_message()).await,
    };
    match message {
        Message::Request(request) if Server::takes_time(&request) => {
            let (answer, out) = (server.answer(request, peer), peer.out.clone());
            calls.spawn(async move {
                let _held = hold;
                if let Some(reply) = answer.await {
                    out.send(reply.message).await;
                }
            });
        }
        Message::Request(request) => {
            if let Some(reply) = server.answer(request, peer).await {
                peer.out.send(reply.message).await;
            }
        }
        other => server.receive(other, &peer.session),
    }
}

async fn take_batch(
    server: &Arc<Server>,
    bytes: Vec<u8>,
    hold: Hold,
    peer: &Peer,
    calls: &mut JoinSet<()>,
) {
    let parsed = if peer.transport.allows_batches(&peer.session) {
        message::read(bytes, hold, message::parse_batch).await
    } else {
        let message = "there are no batches in this revision; send one message at a time";
        Err(garbled(message.to_owned()))
    };
    match parsed {
        Err(garbled) => peer.out.send(garbled.to_message()).await,
        Ok((messages, hold)) => {
            let (server, peer) = (server.clone(), peer.clone());
            calls.spawn(async move {
                let _held = hold;
                if let Some(reply) = server.answer_all(messages, &peer).await {
                    peer.out.send(reply.message).await;
                }
            });
        }
    }
}

/// Tells a legacy client of a change. A modern one asks to be told.
async fn send_change(peer: &Peer, change: &Change) {
    let wanted = match change {
        Change::Updated(uri) => peer.session.watches(uri),
        _ => peer.session.revision().is_some(),
    };
    if wanted {
        let notification = message::notification(change.method(), &change.params());
        peer.out.send(notification).await;
    }
}

/// A line that has come, and what is held of it until it is answered.
enum Line {
    Whole(Vec<u8>, Hold),
    Refused(Garbled),
}

fn garbled(message: String) -> Garbled {
    Garbled {
        id: None,
        fault: Box::new(Fault::new(Fault::INVALID_REQUEST, message)),
    }
}

async fn read(mut input: File, lines: mpsc::Sender<Line>) -> io::Result<()> {
    let mut splitter = Splitter::default();
    let mut buffer = vec![0; 1 << 16];
    #[expect(deprecated, reason = "sound for a `File`: it stays open as what it is")]
    let ready = AsyncFd::with_interest(input.try_clone()?, Interest::READABLE);
    // A file is always ready, and says that it cannot tell.
    let Ok(ready) = ready else {
        let read = move || -> io::Result<()> {
            loop {
                let length = read_some(&mut input, &mut buffer)?;
                for line in splitter.feed(&buffer[..length]) {
                    lines.blocking_send(line).map_err(io::Error::other)?;
                }
            }
        };
        return tokio::task::spawn_blocking(read).await?;
    };
    loop {
        let mut ready = ready.readable().await?;
        if !is_ready(&input, PollFlags::IN) {
            ready.clear_ready();
            continue;
        }
        let length = read_some(&mut input, &mut buffer)?;
        for line in splitter.feed(&buffer[..length]) {
            lines.send(line).await.map_err(io::Error::other)?;
        }
    }
}

/// Reads what is there, or waits for it. The end is an error.
fn read_some(input: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Whether something can be done with `file` at once.
fn is_ready(file: &File, what: PollFlags) -> bool {
    let mut fds = [PollFd::new(file, what)];
    matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1))
}

/// Makes lines of pieces. A last line without an end is no message: the client was cut
/// off in the middle of it.
#[derive(Default)]
struct Splitter {
    line: Vec<u8>,
    /// Set for a line that is too long, of which nothing but its id is looked for.
    too_long: Option<IdSearch>,
}

impl Splitter {
    fn feed(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            lines.extend(self.take());
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
        lines
    }

    fn add(&mut self, piece: &[u8]) {
        if self.too_long.is_none() && self.line.len() + piece.len() <= LONGEST_LINE {
            return self.line.extend_from_slice(piece);
        }
        let search = self.too_long.get_or_insert_default();
        search.feed(&self.line);
        search.feed(piece);
        self.line.clear();
    }

    fn take(&mut self) -> Option<Line> {
        let parsed = if let Some(search) = self.too_long.take() {
            let message = format!("a line may have {LONGEST_LINE} bytes at most");
            let garbled = Garbled {
                id: search.found(),
                ..garbled(message)
            };
            Some(Line::Refused(garbled))
        } else if self.line.trim_ascii().is_empty() {
            None
        } else {
            Some(self.read())
        };
        self.line.clear();
        // A large line that was refused must not be held for as long as the client is quiet.
        self.line.shrink_to(1 << 20);
        parsed
    }

    /// The line, or why there is no room for it.
    fn read(&mut self) -> Line {
        // As it came, and as what it is read into.
        match Hold::of(2 * self.line.len()) {
            Some(hold) => Line::Whole(std::mem::take(&mut self.line), hold),
            None => Line::Refused(Garbled::of(&self.line, Fault::busy())),
        }
    }
}

/// Writes messages out until there are no more, or nobody takes them.
async fn write(mut output: File, mut messages: mpsc::Receiver<String>) -> io::Result<()> {
    // A pipe that polls writable has room for so much.
    const PIPE_BUF: usize = 4096;
    while let Some(mut message) = messages.recv().await {
        message.push('\n');
        // What waits already goes out in one piece.
        while message.len() < 1 << 16 {
            let Ok(next) = messages.try_recv() else {
                break;
            };
            message += &next;
            message.push('\n');
        }
        if message.len() <= PIPE_BUF && is_ready(&output, PollFlags::OUT) {
            output.write_all(message.as_bytes())?;
        } else {
            let write = move || output.write_all(message.as_bytes()).map(|()| output);
            output = tokio::task::spawn_blocking(write).await??;
        }
    }
    Ok(())
}
