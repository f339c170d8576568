//! A stream of a session, of which each call gets its part.

use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use crate::run::capture::{Captured, Ceiling, OutputEvent, Stream};
use crate::secret::Redactor;

/// One stream as long as its session lives.
pub struct Source {
    stream: Stream,
    reader: pipe::Receiver,
    redactor: Option<Redactor>,
    /// Used again by each call.
    buffer: Vec<u8>,
}

/// What a call makes of its output.
pub struct Taking {
    pub ceiling: Arc<Ceiling>,
    pub events: mpsc::Sender<OutputEvent>,
}

impl Source {
    pub fn new(stream: Stream, reader: pipe::Receiver, redactor: Option<Redactor>) -> Self {
        Self {
            stream,
            reader,
            redactor,
            buffer: Vec::new(),
        }
    }

    /// Takes what comes until the call is over, and then what was written by then: a thread that goes on printing does so for the next
    /// call. A slow receiver slows the program down, as any pipe would.
    pub async fn take_until(
        &mut self,
        mut is_over: watch::Receiver<bool>,
        taking: &Taking,
    ) -> Captured {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.reserve(1 << 16);
        let captured = self.take_into(&mut buffer, &mut is_over, taking).await;
        self.buffer = buffer;
        captured
    }

    async fn take_into(
        &mut self,
        buffer: &mut Vec<u8>,
        is_over: &mut watch::Receiver<bool>,
        taking: &Taking,
    ) -> Captured {
        let mut captured = Captured::default();
        loop {
            buffer.clear();
            let read = tokio::select! {
                read = self.reader.read_buf(buffer) => read.unwrap_or(0),
                _ = is_over.wait_for(|is_over| *is_over) => break,
            };
            if read == 0 {
                // Closed by the program, which may go on.
                return captured;
            }
            self.take(buffer, taking, &mut captured).await;
        }
        let mut left = rustix::io::ioctl_fionread(&self.reader).unwrap_or(0);
        while left > 0 {
            buffer.clear();
            let Ok(read @ 1..) = self.read_now(buffer) else {
                break;
            };
            left = left.saturating_sub(read as u64);
            self.take(buffer, taking, &mut captured).await;
        }
        let held = self.redactor.as_mut().map(Redactor::finish);
        if let Some(held) = held.filter(|held| !held.is_empty()) {
            self.pass_on(held, taking, &mut captured).await;
        }
        captured
    }

    /// Reads what is there. Not by the runtime: it may not have heard yet that there is something.
    fn read_now(&self, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
        let room = rustix::buffer::spare_capacity(buffer);
        Ok(rustix::io::read(&self.reader, room)?)
    }

    async fn take(&mut self, bytes: &[u8], taking: &Taking, captured: &mut Captured) {
        taking.ceiling.count(bytes.len());
        let bytes = match &mut self.redactor {
            None => bytes.to_vec(),
            Some(redactor) => redactor.feed(bytes),
        };
        self.pass_on(bytes, taking, captured).await;
    }

    async fn pass_on(&self, bytes: Vec<u8>, taking: &Taking, captured: &mut Captured) {
        captured.add(&bytes);
        if !bytes.is_empty() && !taking.events.is_closed() {
            let stream = self.stream;
            let _ = taking.events.send(OutputEvent { stream, bytes }).await;
        }
    }
}
