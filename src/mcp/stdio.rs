//! The transport over standard input and output: one message on a line.
//!
//! Reading and writing have a thread each, because either may be a file, a
//! terminal or a pipe, and a pipe that is shared must not be made non-blocking.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::change::Change;
use super::context::Outbox;
use super::era::Way;
use super::message::{self, Fault, Garbled, Message};
use super::server::{Peer, Server};
use super::session::Session;

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

/// Serves until `input` ends, nobody reads `output` any more, or `stop` does.
///
/// Every call that is then still open is ended, and with it its cell.
pub async fn serve(
    server: &Arc<Server>,
    input: impl io::Read + Send + 'static,
    output: impl io::Write + Send + 'static,
    stop: impl Future<Output = ()>,
) {
    let (out, outgoing) = Outbox::new(64);
    let (lines, mut inbox) = mpsc::channel(64);
    let writer = thread::spawn(move || write(output, outgoing));
    let (end, ended) = watch::channel(false);
    // Waits in a read until the client ends, perhaps longer than we do.
    thread::spawn(move || {
        read(input, &lines);
        end.send_replace(true);
    });

    let peer = Peer {
        session: Arc::new(Session::default()),
        way: Way::Stdio,
        out,
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
                tell(&peer, &change).await;
            },
            Some(_) = calls.join_next(), if !calls.is_empty() => {}
            () = peer.out.closed() => break,
            () = &mut stop => break,
        }
    }
    calls.shutdown().await;
    drop(peer);
    let written = tokio::task::spawn_blocking(move || writer.join());
    let _ = tokio::time::timeout(LAST_WORDS, written).await;
}

/// Waits for the end of input, and then for what was said to be written.
async fn given_up(mut ended: watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
    tokio::time::sleep(LAST_WORDS).await;
}

async fn take(server: &Arc<Server>, line: Line, peer: &Peer, calls: &mut JoinSet<()>) {
    let message = match line {
        Line::One(Ok(message)) => message,
        Line::One(Err(garbled)) => return peer.out.send(garbled.to_message()).await,
        Line::Batch(bytes) => return take_batch(server, &bytes, peer, calls).await,
    };
    match message {
        Message::Request(request) if Server::takes_time(&request) => {
            let (answer, out) = (server.answer(request, peer), peer.out.clone());
            calls.spawn(async move {
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
        other => server.hear(other, &peer.session),
    }
}

async fn take_batch(server: &Arc<Server>, bytes: &[u8], peer: &Peer, calls: &mut JoinSet<()>) {
    let parsed = if peer.way.allows_batches(&peer.session) {
        message::parse_batch(bytes)
    } else {
        let message = "there are no batches in this revision; send one message at a time";
        Err(garbled(message.to_owned()))
    };
    match parsed {
        Err(garbled) => peer.out.send(garbled.to_message()).await,
        Ok(messages) => {
            let (server, peer) = (server.clone(), peer.clone());
            calls.spawn(async move {
                if let Some(reply) = server.answer_all(messages, &peer).await {
                    peer.out.send(reply.message).await;
                }
            });
        }
    }
}

/// Tells a legacy client of a change. A modern one asks to be told.
async fn tell(peer: &Peer, change: &Change) {
    let wanted = match change {
        Change::Updated(uri) => peer.session.watches(uri),
        _ => peer.session.revision().is_some(),
    };
    if wanted {
        let notification = message::notification(change.method(), &change.params());
        peer.out.send(notification).await;
    }
}

/// A line that has come.
enum Line {
    One(Result<Message, Garbled>),
    /// Whether it may be read as one depends on the session.
    Batch(Vec<u8>),
}

fn garbled(message: String) -> Garbled {
    Garbled {
        id: None,
        fault: Box::new(Fault::new(Fault::INVALID_REQUEST, message)),
    }
}

fn read(input: impl io::Read, lines: &mpsc::Sender<Line>) {
    let mut reader = BufReader::with_capacity(1 << 16, input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let parsed = match next_line(&mut reader, &mut line) {
            Ok(Found::End) | Err(_) => return,
            Ok(Found::TooLong) => Line::One(Err(garbled(format!(
                "a line may have {LONGEST_LINE} bytes at most"
            )))),
            Ok(Found::Line) if line.trim_ascii().is_empty() => continue,
            Ok(Found::Line) if message::is_batch(&line) => Line::Batch(line.clone()),
            Ok(Found::Line) => Line::One(message::parse(&line)),
        };
        // A large program must not be held for as long as the client is quiet.
        if line.capacity() > 1 << 20 {
            line = Vec::new();
        }
        if lines.blocking_send(parsed).is_err() {
            return;
        }
    }
}

enum Found {
    Line,
    TooLong,
    End,
}

/// Reads a line without its end. A last line without an end is no message: the
/// client was cut off in the middle of it.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Found> {
    let mut too_long = false;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(Found::End);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..end.unwrap_or(available.len())];
        too_long |= line.len() + piece.len() > LONGEST_LINE;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(piece);
        }
        let used = end.map_or(available.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(if too_long {
                Found::TooLong
            } else {
                Found::Line
            });
        }
    }
}

/// Writes messages out until there are no more, or nobody takes them.
fn write(mut output: impl io::Write, mut messages: mpsc::Receiver<String>) {
    while let Some(mut message) = messages.blocking_recv() {
        message.push('\n');
        // What waits already goes out in one piece.
        while message.len() < 1 << 16 {
            let Ok(next) = messages.try_recv() else {
                break;
            };
            message += &next;
            message.push('\n');
        }
        if output.write_all(message.as_bytes()).is_err() || output.flush().is_err() {
            return;
        }
    }
}
