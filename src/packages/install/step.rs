//! One step of an install: the plan of its cell, and how that ended.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jail::{Limits, Tree};
use tokio::sync::mpsc;

use super::files::{Files, cell_path};
use super::tool::Tool;
use super::{Job, reason_of};
use crate::packages::gateway::{Gateway, PORT};
use crate::packages::{IN_CELL, PackageError};
use crate::plan::{RunPlan, Source};
use crate::request::{FileSource, InputFile};
use crate::run::{self, Door, Outcome, RunResult, StartError, Stdin, Surface};

/// How a step ended.
pub enum Step {
    Done(Box<RunResult>),
    /// By itself, with words for the caller.
    Failed(String),
    Cancelled(Box<RunResult>),
}

impl Job<'_> {
    /// The plan of one step's cell. It has nothing of the program: neither its code nor its
    /// files, variables or arguments.
    pub(super) fn step(
        &self,
        tool: &Tool<'_>,
        gateway: &Gateway,
        words: &[String],
        given: Files,
        staged: &Path,
    ) -> RunPlan {
        let how = &self.packages.how;
        let index = gateway.index();
        let fill = [
            ("{tool}", tool.program.as_str()),
            ("{runtime}", &self.plan.runtime.program),
            ("{index}", &index),
        ];
        let memory = u64::from(how.memory) << 20;
        let timeout = Duration::from_secs(how.timeout.into());
        let own = self
            .plan
            .trees
            .iter()
            .filter(|it| it.cell != Path::new(IN_CELL));
        let mut trees: Vec<Tree> = own.chain(&tool.trees).cloned().collect();
        trees.dedup();
        let folder = |path: &str| InputFile {
            path: cell_path(path),
            source: FileSource::EmptyFolder,
            mode: 0o755,
        };
        let bytes = match given.list.source {
            FileSource::Bytes(bytes) => bytes,
            _ => Vec::new(),
        };
        let env = tool.installer.env.iter();
        let env = env.map(|(name, value)| (name.clone(), value.replace("{index}", &index)));
        RunPlan {
            argv: tool
                .installer
                .command(words, &given.words, &fill, self.settings.build),
            env: self.packages.env.clone().into_iter().chain(env).collect(),
            trees,
            source: Source {
                path: given.list.path,
                bytes,
            },
            files: [folder("out"), folder("cache")]
                .into_iter()
                .chain(given.beside)
                .collect(),
            limits: Limits {
                memory,
                cpus: 2.0,
                cpu_seconds: 2 * timeout.as_secs() + 1,
                tasks: 256,
                file_size: memory,
                workspace: memory / 4 * 3,
                workspace_inodes: 500_000,
                tmp: memory / 4,
                ..self.plan.limits.clone()
            },
            timeout,
            output_limit: 16 << 20,
            build: None,
            zygote: None,
            wake: String::new(),
            packages: None,
            mounts: Vec::new(),
            egress: None,
            servers: Vec::new(),
            collect: Vec::new(),
            export: Some((cell_path("out/tree"), staged.to_owned())),
            ..self.plan.clone()
        }
    }

    pub(super) async fn execute<C: Future<Output = ()>>(
        &self,
        step: RunPlan,
        gateway: &Arc<Gateway>,
        cancelled: Pin<&mut C>,
    ) -> Result<Step, PackageError> {
        let cell = |error: StartError| match error {
            StartError::Collect(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                self.store.disk(source)
            }
            error => PackageError::Cell(Box::new(error)),
        };
        let jail = (self.context.jail)(&step.trees).map_err(|it| cell(it.into()))?;
        let surface = Surface {
            stdin: Stdin::Empty,
            // Nobody listens: what is kept is enough.
            events: mpsc::channel(1).0,
            requirement: self.context.requirement,
            door: Some(Door::Own {
                port: PORT,
                service: gateway.clone(),
            }),
        };
        let cgroups = self.context.cgroups;
        let result = run::run(jail, None, cgroups, &step, surface, cancelled)
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
