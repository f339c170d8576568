//! One step of an install: the launch of its cell, and how that ended.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::Job;
use super::files::{Files, cell_path};
use super::reason::reason_of;
use super::tool::Tool;
use crate::cell::{CellError, Launch, Limits};
use crate::packages::PackageError;
use crate::packages::gateway::{Gateway, PORT};
use crate::request::{FileSource, InputFile};
use crate::run::{self, Ended, Outcome, Surface};

/// How a step ended.
pub enum Step {
    Done(Box<Ended>),
    /// By itself, with words for the caller.
    Failed(String),
    Cancelled(Box<Ended>),
}

impl Job<'_> {
    /// One step. It has nothing of the program: neither its code nor its files, variables or arguments.
    pub(super) fn step(
        &self,
        tool: &Tool<'_>,
        gateway: &Arc<Gateway>,
        words: &[String],
        given: Files,
        staged: &Path,
    ) -> Launch {
        let how = &self.packages.how;
        let index = gateway.index();
        let fill = [
            ("{tool}", tool.program.as_str()),
            ("{runtime}", &self.packages.runtime.program),
            ("{index}", &index),
        ];
        let installer = tool.installer;
        let argv = installer.command(words, &given.words, &fill, self.settings.build);
        let env = installer.env.iter();
        let env = env.map(|(name, value)| (name.clone(), value.replace("{index}", &index)));
        let folder = |path: &str| InputFile {
            path: cell_path(path),
            source: FileSource::EmptyFolder,
            mode: 0o755,
        };
        let memory = u64::from(how.memory) << 20;
        let timeout = Duration::from_secs(how.timeout.into());
        Launch::new(argv)
            .env(self.packages.env.clone())
            .env(env)
            .trees(self.packages.trees.iter().chain(&tool.trees).cloned())
            .files([given.list, folder("out"), folder("cache")])
            .files(given.beside)
            .files(tool.copy.clone())
            .serve(PORT, gateway.clone())
            .limits(Limits {
                memory,
                cpus: 2.0,
                cpu_seconds: 2 * timeout.as_secs() + 1,
                tasks: 256,
                file_size: memory,
                workspace: memory / 4 * 3,
                workspace_inodes: 500_000,
                tmp: memory / 4,
                ..Limits::default()
            })
            .timeout(timeout)
            .output_limit(16 << 20)
            .export(cell_path("out/tree"), staged.to_owned())
    }

    pub(super) async fn execute<C: Future<Output = ()>>(
        &self,
        step: Launch,
        gateway: &Arc<Gateway>,
        cancelled: Pin<&mut C>,
    ) -> Result<Step, PackageError> {
        let cell = |error: CellError| match error {
            CellError::Collect(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                self.store.disk(source)
            }
            error => PackageError::Cell(Box::new(error)),
        };
        let surface = Surface::silent(self.context.requirement);
        let result = run::run(self.context.provider, &step, surface, cancelled)
            .await
            .map_err(cell)?;
        let trouble = gateway.log().trouble.first().cloned();
        let seconds = step.timeout.as_secs();
        match (&result.outcome, trouble) {
            (Outcome::Exited { code: 0, .. }, _) => Ok(Step::Done(Box::new(result))),
            (Outcome::Cancelled, _) => Ok(Step::Cancelled(Box::new(result))),
            (_, Some(reason)) if gateway.log().is_unreachable => Err(PackageError::NoNetwork {
                what: self.what(),
                reason,
            }),
            (_, Some(reason)) => Err(self.stopped(&reason)),
            (Outcome::TimedOut, _) => {
                Err(self.stopped(&format!("it took longer than {seconds} s")))
            }
            (Outcome::OutOfMemory, _) => {
                Err(self.stopped("the packages are larger than an installer's memory"))
            }
            (Outcome::Exited { .. }, _) => {
                let said = [result.stderr.to_text(), result.stdout.to_text()].concat();
                if said.contains("No space left on device") {
                    return Err(self.stopped("the packages are larger than an installer's disk"));
                }
                Ok(Step::Failed(reason_of(&said)))
            }
            _ => Err(self.stopped("the installer was lost")),
        }
    }
}
