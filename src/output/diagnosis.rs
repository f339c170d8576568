//! Why a program, or its compiler, failed by itself: as far as it said so.

use super::{ErrorOutput, Status, Verdict, folder, installs};
use crate::compile::Compiled;
use crate::egress;
use crate::error_kind::ErrorKind;
use crate::hint::{Hint, Limit};
use crate::language::{Cause, Diagnosis};
use crate::packages::Refused;
use crate::plan::RunPlan;
use crate::request::{Ecosystem, bytes};

impl Verdict {
    /// Why a program failed by itself, as far as its runtime said so.
    pub(super) fn diagnosed(plan: &RunPlan, exited: String, shell_code: u8, stderr: &[u8]) -> Self {
        let Diagnosis { cause, file, line } = plan.failure().diagnose(stderr);
        let mut module = None;
        let mut is_said = true;
        let (kind, message, hint) = match cause {
            Cause::Unknown => {
                let host = match plan.egress {
                    None => egress::missing_network(stderr, &String::from_utf8_lossy(plan.code())),
                    Some(_) => None,
                };
                let refused = folder::refused(stderr, &plan.launch.view.mounts);
                is_said = host.is_none() && refused.is_none();
                if let Some(host) = host {
                    let message = format!("{exited}: it has no network");
                    (ErrorKind::Denied, message, Some(Hint::GrantHost(host)))
                } else if let Some((why, hint)) = refused {
                    (ErrorKind::Denied, format!("{exited}: {why}"), Some(hint))
                } else {
                    (ErrorKind::Exception, exited, None)
                }
            }
            Cause::NoInput => {
                let message = format!("{exited}: it read more input than there was");
                (ErrorKind::Exception, message, Some(Hint::GiveInput))
            }
            Cause::NoMemory => {
                is_said = false;
                Self::says_no_memory(plan, &exited)
            }
            Cause::Syntax { words } => {
                let message = format!("the program could not be parsed: {words}");
                (ErrorKind::Syntax, message, None)
            }
            Cause::MissingModule { module: name, hint } => {
                is_said = hint.is_none();
                let message = format!("the program needs `{name}`, which is not installed");
                let hint = match hint {
                    // SECURITY: nobody's package is ours.
                    _ if name == "hotcell" => Hint::from(
                        "Do without it: this language has no module `hotcell`, and a package of that name is not ours.",
                    ),
                    hint => hint.map_or(Hint::NamePackage, Hint::OfDefinition),
                };
                module = Some(name);
                (ErrorKind::MissingModule, message, Some(hint))
            }
        };
        let error = ErrorOutput {
            // A line without a file is one of the program itself.
            file: file.or_else(|| line.map(|_| plan.source.to_string())),
            line,
            module,
            ..ErrorOutput::new(kind, message)
        };
        Self {
            hint,
            is_said,
            ..Self::failed(Status::Failed, shell_code, error)
        }
    }

    /// The words for a program that says it got no more memory. Nobody but itself says so: its status stays what the kernel saw.
    pub(super) fn says_no_memory(plan: &RunPlan, ended: &str) -> (ErrorKind, String, Option<Hint>) {
        let message = format!("{ended}: it says that it got no more memory");
        let most = plan.most.memory;
        let room = (plan.launch.limits.memory < most).then(|| bytes(most));
        let hint = Hint::Raise(Limit::Memory, room);
        (ErrorKind::Memory, message, Some(hint))
    }

    /// Why there is no program to run.
    pub(super) fn of_compiler(self, compiled: &Compiled, refused: &[Refused]) -> Self {
        let Some(mut error) = self.error else {
            return self;
        };
        let mut hint = self.hint;
        match error.kind {
            // A compiler that exits with a code does so for what is wrong with its sources.
            ErrorKind::Exception | ErrorKind::Syntax | ErrorKind::MissingModule => {
                let first = compiled.problems.first();
                // What it says is missing is no mistake in how the program is written.
                let is_missing = error.kind == ErrorKind::MissingModule;
                let kind = match is_missing {
                    true => ErrorKind::MissingModule,
                    false => ErrorKind::Syntax,
                };
                let module = error.module.filter(|_| is_missing);
                let message = match first {
                    Some(problem) => {
                        format!("the program could not be compiled: {}", problem.message)
                    }
                    None => "the program could not be compiled".to_owned(),
                };
                error = ErrorOutput {
                    file: first.map(|problem| problem.file.clone()),
                    line: first.map(|problem| problem.line),
                    column: first.and_then(|problem| problem.column),
                    diagnostics: compiled.problems.clone(),
                    module,
                    ..ErrorOutput::new(kind, message)
                };
                hint = None;
            }
            ErrorKind::Timeout => {
                hint = Some(
                    "The compiler's own limit is `[compile] timeout` of the language; give it less to do, \
                     or describe the language anew in hotcell's configuration."
                        .into(),
                );
            }
            ErrorKind::Memory => {
                hint =
                    Some("The compiler's own limit is `[compile] memory` of the language.".into());
            }
            _ => {}
        }
        // A compiler has no field for what it misses, but it says its name.
        let missed = refused.iter().find(|it| error.message.contains(&it.module));
        error.module = missed.map(|it| it.module.clone()).or(error.module);
        Self {
            is_said: matches!(error.kind, ErrorKind::Syntax | ErrorKind::MissingModule),
            error: Some(error),
            hint,
            ..self
        }
    }

    /// A failure after a host was refused, with its name: whatever the program says of it.
    pub(super) fn denied(mut self, network: Option<&egress::Report>) -> Self {
        let denied = network.into_iter().flat_map(|it| &it.denied);
        let grant = denied.filter_map(|it| it.grant.as_ref()).next_back();
        if let (Some(error), Some(grant)) = (&mut self.error, grant)
            && error.kind == ErrorKind::Exception
        {
            error.kind = ErrorKind::Denied;
            error.message = format!("{}: `{grant}` is not granted to it", error.message);
            self.hint = Some(Hint::GrantRefused(grant.clone()));
        }
        self
    }

    /// A program that runs an installer, which cannot work: with what to do instead, if it failed, or the installer did and it went on.
    pub(super) fn about_installers(mut self, plan: &RunPlan, stderr: &[u8]) -> Self {
        let failed = [ErrorKind::Exception, ErrorKind::Denied, ErrorKind::Timeout];
        let has_failed = match &self.error {
            Some(error) => failed.contains(&error.kind),
            None => installs::has_failed(&String::from_utf8_lossy(stderr)),
        };
        if has_failed
            && plan.egress.is_none()
            && let Some(found) = installs::find(&String::from_utf8_lossy(plan.code()))
        {
            self.is_said = false;
            let plain = plan.packages_from.unwrap_or(Ecosystem::USUAL);
            let from = found.from();
            self.hint = Some(Hint::NameInsteadOf {
                installer: found.installer,
                packages: found.packages,
                registry: Some(from)
                    .filter(|from| *from != plain)
                    .map(Ecosystem::name),
            });
        }
        self
    }

    /// A failure of a program that reads input and was given none: not every runtime says that this is why.
    pub(super) fn about_input(mut self, plan: &RunPlan, had_input: bool) -> Self {
        let is_unexplained = |it: &ErrorOutput| it.kind == ErrorKind::Exception;
        if !had_input
            && self.hint.is_none()
            && self.error.as_ref().is_some_and(is_unexplained)
            && plan
                .failure()
                .reads_input(&String::from_utf8_lossy(plan.code()))
        {
            self.hint = Some(Hint::GiveInput);
        }
        self
    }

    /// A missing module with the reason why nothing was installed for it.
    pub(super) fn explained(mut self, refused: &[Refused]) -> Self {
        if let Some(error) = &mut self.error
            && let Some(module) = error.module.as_deref()
            && let Some(refused) = refused
                .iter()
                .find(|it| module.split('.').next() == Some(it.module.as_str()))
        {
            error.candidates = refused.candidates.clone();
            self.is_said &= error.kind != ErrorKind::MissingModule;
            self.hint = Some(Hint::NameRefusedPackage {
                candidates: refused.candidates.clone(),
                why: refused.why.clone(),
            });
        }
        self
    }
}
