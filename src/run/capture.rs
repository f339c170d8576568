//! Reading what a program prints.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::{Errno, read};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::picture::{Found, end_of_rest, find_pictures, readable};
use crate::cell::{Pending, TerminalEnd};
use crate::secret::Redactor;

/// How much of a stream is kept in memory: the first three quarters of it from
/// the beginning, the rest from the end.
const KEPT: usize = 1 << 20;
const HEAD: usize = KEPT / 4 * 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// Not of the program: what is being done for it before it starts.
    Notice,
    /// How far that is: a line in the place of the one before it, or of nothing.
    Progress,
}

/// A piece of output, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputEvent {
    pub stream: Stream,
    pub bytes: Vec<u8>,
}

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes that the program wrote in all.
    pub total: u64,
}

impl Captured {
    /// How many bytes from the beginning of a stream are kept whatever follows.
    pub const HEAD: usize = HEAD;

    /// Those bytes; fewer if there were fewer.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Several streams one after the other, as far as they were kept.
    pub fn joined<const N: usize>(streams: [&Self; N]) -> Self {
        let mut joined = Self::default();
        for stream in streams {
            joined.add(&stream.head);
            joined.add(&stream.tail);
        }
        joined.total = streams.iter().map(|stream| stream.total).sum();
        joined
    }

    pub fn is_truncated(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// The kept bytes as text, with a line in the gap if there is one.
    ///
    /// A picture becomes a word about it. What else is not UTF-8 becomes the replacement
    /// character; a character that the gap cut in two does too.
    pub fn to_text(&self) -> String {
        if !self.is_truncated() {
            return readable(&self.whole());
        }
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        let cut = find_pictures(&self.head).pop().filter(|it| !it.is_whole);
        let after = cut.map_or(0, |picture| end_of_rest(picture.kind, &self.tail));
        format!(
            "{}\n[... {left_out} bytes left out ...]\n{}",
            readable(&self.head),
            readable(&self.tail[after..])
        )
    }

    /// The pictures in it that clients can show, if it was kept whole; and whether it is one picture and nothing else.
    pub fn pictures(&self) -> (Vec<(&'static str, Vec<u8>)>, bool) {
        if self.is_truncated() {
            return (Vec::new(), false);
        }
        let whole = self.whole();
        let found = find_pictures(&whole);
        let is_all = match &found[..] {
            [one] => one.at.start == 0 && whole[one.at.end..].trim_ascii().is_empty(),
            _ => false,
        };
        let picture = |it: Found| (it.kind, whole[it.at].to_vec());
        (found.into_iter().map(picture).collect(), is_all)
    }

    fn whole(&self) -> Cow<'_, [u8]> {
        match self.tail.is_empty() {
            true => Cow::Borrowed(&self.head),
            false => Cow::Owned([&self.head[..], &self.tail[..]].concat()),
        }
    }

    /// The last bytes of the stream: at least a quarter of what is kept, if there was so much.
    pub fn tail(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() {
            Cow::Borrowed(&self.head)
        } else if self.is_truncated() {
            Cow::Borrowed(&self.tail)
        } else {
            // Just beyond the head: the two are one piece.
            Cow::Owned([&self.head[..], &self.tail[..]].concat())
        }
    }

    pub fn add(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = HEAD - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        bytes = rest;
        let room = KEPT - HEAD;
        bytes = &bytes[bytes.len().saturating_sub(room)..];
        let over = (self.tail.len() + bytes.len()).saturating_sub(room);
        self.tail.drain(..over);
        self.tail.extend_from_slice(bytes);
    }
}

/// The hard ceiling over both streams of a run.
#[derive(Debug)]
pub struct Ceiling {
    /// Below zero when more has been printed.
    left: AtomicI64,
    reached: Notify,
}

impl Ceiling {
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicI64::new(bytes.try_into().unwrap_or(i64::MAX)),
            reached: Notify::new(),
        })
    }

    /// Waits until more than the ceiling has been printed.
    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Whether more than the ceiling has been printed.
    pub fn is_passed(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    pub fn count(&self, bytes: usize) {
        let bytes = bytes as i64;
        if self.left.fetch_sub(bytes, Ordering::Relaxed) < bytes {
            self.reached.notify_one();
        }
    }
}

/// Whether nobody is left who could write: then what is in a pipe is all there is, though somebody may hold its other end.
#[derive(Debug, Default)]
pub struct LastWord {
    said: AtomicBool,
    news: Notify,
}

impl LastWord {
    /// For one reader.
    pub fn say(&self) {
        self.said.store(true, Ordering::Release);
        self.news.notify_one();
    }

    async fn said(&self) {
        while !self.said.load(Ordering::Acquire) {
            self.news.notified().await;
        }
    }
}

/// A stream that is read while a program runs.
pub struct Reading {
    pub stream: Stream,
    pub reader: Reader,
    pub last: Arc<LastWord>,
    pub ceiling: Arc<Ceiling>,
    pub events: mpsc::Sender<OutputEvent>,
    pub redactor: Option<Redactor>,
}

/// Where output comes from.
pub enum Reader {
    Pipe(pipe::Receiver),
    /// With what the runtime has not yet written there, and how much of the stream was read.
    Gathered(pipe::Receiver, Option<Pending>, u64),
    Terminal(TerminalEnd),
}

impl Reader {
    pub fn new(pipe: pipe::Receiver, pending: Option<Pending>) -> Self {
        match pending {
            Some(_) => Self::Gathered(pipe, pending, 0),
            None => Self::Pipe(pipe),
        }
    }

    /// Reads what there is to the end of an empty buffer.
    async fn read(&mut self, buffer: &mut Vec<u8>, last: &LastWord) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => read_pipe(pipe, buffer, last).await,
            Self::Gathered(pipe, pending, read) => {
                let found = read_gathered(pipe, pending, *read, buffer, last).await?;
                *read += found as u64;
                Ok(found)
            }
            Self::Terminal(terminal) => {
                buffer.resize(1 << 16, 0);
                let read = terminal.read(buffer).await;
                buffer.truncate(*read.as_ref().unwrap_or(&0));
                read
            }
        }
    }
}

/// Reads what there is. What nobody can write to any more has ended when it is empty.
async fn read_pipe(
    pipe: &mut pipe::Receiver,
    buffer: &mut Vec<u8>,
    last: &LastWord,
) -> io::Result<usize> {
    tokio::select! {
        biased;
        read = pipe.read_buf(buffer) => return read,
        () = last.said() => {}
    }
    // Past tokio, which may not have been told yet that there is something.
    match read(&*pipe, rustix::buffer::spare_capacity(buffer)) {
        Err(Errno::AGAIN) => Ok(0),
        found => Ok(found?),
    }
}

/// How long a program is quiet before what waits is taken.
const QUIET: Duration = Duration::from_millis(40);

async fn read_gathered(
    pipe: &mut pipe::Receiver,
    waiting: &mut Option<Pending>,
    read: u64,
    buffer: &mut Vec<u8>,
    last: &LastWord,
) -> io::Result<usize> {
    loop {
        let Some(pending) = &*waiting else {
            return read_pipe(pipe, buffer, last).await;
        };
        let found = match timeout(QUIET, read_pipe(pipe, buffer, last)).await {
            // What is left comes once, and then the end again.
            Ok(Ok(0)) => {
                let rest = pending.rest(read);
                *waiting = None;
                rest
            }
            Ok(found) => return found,
            Err(_) => {
                let is_silent = || rustix::io::ioctl_fionread(&*pipe).is_ok_and(|bytes| bytes == 0);
                match pending.take(is_silent) {
                    Some(found) => found,
                    None => continue,
                }
            }
        };
        buffer.extend_from_slice(&found);
        return Ok(found.len());
    }
}

impl Reading {
    /// Copies the stream to `events` until end of file, keeping its head and tail in `captured`.
    ///
    /// The pipe is always read to its end: past what is kept, and after the receiver
    /// has gone. A slow receiver slows the program down, as any pipe would.
    pub async fn until_end(mut self, captured: Arc<Mutex<Captured>>) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(1 << 16);
        let mut pace = Pace::default();
        loop {
            buffer.clear();
            let read = self.reader.read(&mut buffer, &self.last).await?;
            pace.note(read, Instant::now());
            let redacted;
            let bytes = match &mut self.redactor {
                None => &buffer[..],
                Some(redactor) => {
                    redacted = match read {
                        0 => redactor.finish(),
                        _ => redactor.feed(&buffer),
                    };
                    &redacted[..]
                }
            };
            if read == 0 && bytes.is_empty() {
                return Ok(());
            }
            captured
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(bytes);
            self.ceiling.count(read);
            if !self.events.is_closed() {
                let (stream, bytes) = (self.stream, bytes.to_vec());
                let _ = self.events.send(OutputEvent { stream, bytes }).await;
            }
            if pace.is_chatty() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A pause in which small pieces that come fast are gathered by the pipe: to be woken for each takes longer than to read it.
const PAUSE: Duration = Duration::from_millis(1);
const SMALL: usize = 1024;
/// What pieces may come to in a pause. A pipe that is nearly full has kept its program waiting.
const GATHERED: usize = 48 << 10;
/// After so many, so that a program which says little is never kept waiting.
const MANY: u32 = 16;

/// How a program prints.
#[derive(Default)]
struct Pace {
    last: Option<Instant>,
    small: u32,
}

impl Pace {
    fn note(&mut self, read: usize, now: Instant) {
        let is_soon = self.last.is_some_and(|last| now - last < 5 * PAUSE);
        self.last = Some(now);
        // After a pause it has more to say, which is no reason to be woken for each piece again.
        let most = if self.is_chatty() { GATHERED } else { SMALL };
        self.small = match is_soon && (1..most).contains(&read) {
            true => self.small.saturating_add(1),
            false => 0,
        };
    }

    fn is_chatty(&self) -> bool {
        self.small >= MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_that_come_fast_are_gathered_until_they_come_slowly_or_fill_the_pipe() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut note = |pace: &mut Pace, read, later| {
            now += later;
            pace.note(read, now);
            pace.is_chatty()
        };
        let soon = Duration::from_micros(10);
        for _ in 0..MANY {
            assert!(!note(&mut pace, 10, soon));
        }
        assert!(note(&mut pace, 10, soon));
        assert!(note(&mut pace, 20_000, PAUSE), "what came in a pause");
        assert!(note(&mut pace, 20_000, 2 * PAUSE));
        assert!(!note(&mut pace, 1 << 16, PAUSE), "a full pipe");
        assert!(!note(&mut pace, 20_000, soon), "large pieces");
        for _ in 0..MANY {
            note(&mut pace, 10, soon);
        }
        assert!(note(&mut pace, 10, soon));
        assert!(
            !note(&mut pace, 10, 100 * PAUSE),
            "a program that says little"
        );
    }

    #[tokio::test]
    async fn a_pipe_that_nobody_writes_to_any_more_ends_though_it_is_held() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let last = Arc::new(LastWord::default());
        let reading = Reading {
            stream: Stream::Stdout,
            reader: Reader::Pipe(pipe::Receiver::from_owned_fd(reader).expect("a pipe")),
            last: last.clone(),
            ceiling: Ceiling::new(1 << 20),
            events: mpsc::channel(1).0,
            redactor: None,
        };
        let captured = Arc::new(Mutex::default());
        let mut reading = std::pin::pin!(reading.until_end(captured.clone()));
        rustix::io::write(&writer, b"one ").expect("it is written");
        // The control: it waits for more.
        assert!(timeout(QUIET, &mut reading).await.is_err());
        rustix::io::write(&writer, &[b'x'; 50_000]).expect("it is written");
        last.say();
        reading.await.expect("it ends");
        let captured: Captured = std::mem::take(&mut *captured.lock().expect("no panic"));
        assert_eq!(captured.total, 50_004);
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let mut captured = Captured::default();
        captured.add(b"hello ");
        captured.add(b"world");
        assert!(!captured.is_truncated());
        assert_eq!(captured.to_text(), "hello world");
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept_and_the_gap_is_named() {
        for piece in [1 << 10, 1 << 20, 3 << 20] {
            let mut captured = Captured::default();
            let input: Vec<u8> = (0..3_u32 << 20).map(|i| b'a' + (i % 23) as u8).collect();
            input.chunks(piece).for_each(|chunk| captured.add(chunk));
            assert!(captured.is_truncated());
            assert_eq!(captured.total, 3 << 20);
            assert_eq!(captured.head, input[..HEAD]);
            assert_eq!(captured.tail, input[input.len() - (KEPT - HEAD)..]);
            assert!(
                captured
                    .to_text()
                    .contains("[... 2097152 bytes left out ...]")
            );
        }
    }

    #[test]
    fn the_end_of_a_stream_is_never_shorter_for_a_few_bytes_more() {
        let mut captured = Captured::default();
        captured.add(&vec![b'a'; HEAD]);
        captured.add(b"the end");
        assert!(captured.tail().ends_with(b"aathe end"));
        captured.add(&vec![b'b'; KEPT]);
        assert_eq!(captured.tail().len(), KEPT - HEAD);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        let mut captured = Captured::default();
        captured.add(b"a\xff\x00b");
        assert_eq!(captured.to_text(), "a\u{fffd}\0b");
    }
}
