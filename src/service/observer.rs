//! What a surface hears of a run while it goes on.

use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc;

use super::long_output::Recorder;
use crate::run::OutputEvent;

/// How often an observer hears of a run that waits. Several MCP clients give up a call
/// after 60 s of silence.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// Whoever asked for a run, while it goes on.
pub trait Observer: Send + Sync {
    /// What is left of the output when it has ended; the default if nothing ran.
    type Heard: Default + Send;

    /// The run waits for others to end: at once, and then every [`HEARTBEAT`].
    fn waits(&self, waited: Duration) {
        let _ = waited;
    }

    /// Whether a stream that is too long for an answer is to be stored whole.
    fn wants_long_output_stored(&self) -> bool {
        false
    }

    /// Takes what the program prints until it ends. While this is slow the program waits, as
    /// for any pipe; if it drops `output`, the program does not notice.
    fn hear(self, output: Output) -> impl Future<Output = Self::Heard> + Send;
}

/// What a program prints, as it comes.
pub struct Output {
    events: mpsc::Receiver<OutputEvent>,
    recorder: Option<Recorder>,
}

impl Output {
    /// The sender for a run, and its output.
    pub(super) fn new(recorder: Option<Recorder>) -> (mpsc::Sender<OutputEvent>, Self) {
        let (sender, events) = mpsc::channel(16);
        (sender, Self { events, recorder })
    }

    /// The next piece; none when the output has ended.
    pub async fn recv(&mut self) -> Option<OutputEvent> {
        let event = self.events.recv().await?;
        self.record(&event);
        Some(event)
    }

    /// The same, for a thread outside of the runtime.
    pub fn blocking_recv(&mut self) -> Option<OutputEvent> {
        let event = self.events.blocking_recv()?;
        self.record(&event);
        Some(event)
    }

    fn record(&self, event: &OutputEvent) {
        if let Some(recorder) = &self.recorder {
            recorder.add(event);
        }
    }
}
