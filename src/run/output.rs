//! Both output streams of a program, and its input, while it runs.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Stdin;
use super::capture::{Captured, Ceiling, LastWord, OutputEvent, Reader, Reading, Stream};
use crate::cell::Launch;
use crate::secret::Redactor;

/// How long after the end of a cell nothing may come, twice, out of a pipe that is still open.
const DRAIN: Duration = Duration::from_millis(100);

/// The two streams on their way out of the cell.
pub struct Output {
    pub ceiling: Arc<Ceiling>,
    streams: [Pump; 2],
}

impl Output {
    pub fn read(
        stdout: Reader,
        stderr: Reader,
        launch: &Launch,
        events: mpsc::Sender<OutputEvent>,
    ) -> Self {
        let ceiling = Ceiling::new(launch.output_limit);
        let streams = [(Stream::Stdout, stdout), (Stream::Stderr, stderr)];
        let streams = streams.map(|(stream, reader)| {
            Pump::start(Reading {
                stream,
                reader,
                last: Arc::default(),
                ceiling: ceiling.clone(),
                events: events.clone(),
                redactor: Redactor::new(&launch.secrets),
            })
        });
        Self { ceiling, streams }
    }

    /// Takes what is in the pipes now as their end: nobody is left who could write.
    pub fn is_all(&self) {
        self.streams.iter().for_each(|pump| pump.last.say());
    }

    /// Waits for the end of both streams.
    pub async fn drain(&mut self) {
        let [stdout, stderr] = &mut self.streams;
        tokio::join!(stdout.drain(), stderr.drain());
    }

    /// Takes what comes at once: nobody waits for more.
    pub async fn drain_briefly(&mut self) {
        let _ = timeout(DRAIN, self.drain()).await;
    }

    /// Ends the reading; what was read of each until now.
    pub async fn finish(self) -> [Captured; 2] {
        let [stdout, stderr] = self.streams;
        [stdout.finish().await, stderr.finish().await]
    }
}

/// A spawned task that ends with its owner.
pub struct Task(tokio::task::JoinHandle<()>);

impl Task {
    pub fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One stream on its way out of the cell.
struct Pump {
    task: Task,
    captured: Arc<Mutex<Captured>>,
    last: Arc<LastWord>,
    events: mpsc::Sender<OutputEvent>,
}

impl Pump {
    fn start(reading: Reading) -> Self {
        let captured = Arc::new(Mutex::default());
        let (kept, events) = (Arc::clone(&captured), reading.events.clone());
        let last = reading.last.clone();
        // A pipe that cannot be read any more has been read to its end.
        let task = Task::start(async { drop(reading.until_end(kept).await) });
        Self {
            task,
            captured,
            last,
            events,
        }
    }

    /// Waits for the end of the stream, as long as something comes or a slow
    /// receiver keeps us: something may hold the pipe without writing to it.
    async fn drain(&mut self) {
        let mut silences = 0;
        // Twice: this process may itself have been stopped or starved for the first.
        while silences < 2 {
            let before = self.lock().total;
            if self.task.0.is_finished() || timeout(DRAIN, &mut self.task.0).await.is_ok() {
                return;
            }
            let waits = self.events.capacity() == 0 && !self.events.is_closed();
            let is_silent = !waits && self.lock().total == before;
            silences = if is_silent { silences + 1 } else { 0 };
        }
    }

    async fn finish(mut self) -> Captured {
        self.task.0.abort();
        if !self.task.0.is_finished() {
            // Until it is gone it holds a sender, and the receiver would wait.
            let _ = (&mut self.task.0).await;
        }
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes input on to a program, and says if there was any.
pub async fn feed(mut pipe: pipe::Sender, stdin: Stdin, came: Arc<AtomicBool>) {
    // A program that does not read its input is no failure of anything.
    match stdin {
        Stdin::Empty => {}
        Stdin::Bytes(bytes) => {
            came.store(!bytes.is_empty(), Ordering::Relaxed);
            drop(pipe.write_all(&bytes).await);
        }
        Stdin::Stream(mut pieces) => {
            while let Some(bytes) = pieces.recv().await {
                came.store(true, Ordering::Relaxed);
                if pipe.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}
