//! The output of a request whose program never ran.

use super::{ErrorOutput, RunOutput, Status, Unworded};
use crate::cell::CellError;
use crate::engine::{Rejected, StartError};
use crate::error_kind::ErrorKind;
use crate::hint::Hint;
use crate::language::LanguageError;
use crate::plan::RunPlan;

impl RunOutput {
    /// A request that was refused: nothing ran.
    pub fn of_rejection(kind: ErrorKind, message: String, hint: Option<Hint>) -> Unworded {
        // A message of whole sentences gets one more.
        let message = match message.ends_with('.') {
            true => format!("{message} Nothing was executed."),
            false => format!("{message}; nothing was executed"),
        };
        let output = Self {
            error: Some(ErrorOutput::new(kind, message)),
            ..Self::empty(Status::Rejected, None)
        };
        Unworded { output, hint }
    }

    /// The same, with all that is known about the reason.
    pub fn of_rejected(rejected: &Rejected, message: String) -> Unworded {
        let mut unworded = Self::of_rejection(rejected.kind(), message, rejected.hint());
        match (rejected, &mut unworded.output.error) {
            (Rejected::Runtime(missing), Some(error)) => {
                error.searched = missing.searched.clone();
                error.path = Some(missing.path.to_string());
                error.install = missing.install.as_deref().map(str::to_owned);
            }
            (Rejected::Language(LanguageError::Undetected { candidates, .. }), Some(error)) => {
                error.candidates = candidates.iter().map(ToString::to_string).collect();
            }
            (Rejected::Platform(platform), Some(error)) => {
                error.requires = Some(platform.requires.clone());
            }
            _ => {}
        }
        unworded
    }

    /// A cell that could not be made: nothing ran.
    pub fn of_start_error(plan: &RunPlan, error: &StartError) -> Unworded {
        let (status, kind) = match error {
            StartError::Cell(CellError::Wall { .. } | CellError::HostKernel { .. }) => {
                (Status::Rejected, ErrorKind::Denied)
            }
            StartError::Packages(error) => (Status::Failed, error.kind()),
            StartError::SessionPackages => (Status::Rejected, ErrorKind::InvalidRequest),
            StartError::Cell(error) if error.is_lost() => (Status::Lost, ErrorKind::Sandbox),
            StartError::Cell(CellError::Container(error)) if error.is_missing() => {
                (Status::Rejected, ErrorKind::MissingRuntime)
            }
            _ => (Status::Rejected, ErrorKind::Sandbox),
        };
        let message = format!("{error}; nothing was executed");
        let hint = error.hint();
        let mut told = ErrorOutput::new(kind, message);
        if let StartError::Packages(error) = error {
            told.module = error.module().map(str::to_owned);
            told.candidates = error.candidates();
        }
        let output = Self {
            error: Some(told),
            ..Self::empty(status, Some(plan))
        };
        Unworded { output, hint }
    }
}
