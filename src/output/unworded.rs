//! A result before a surface has put its hint into words.

use super::{ImageOutput, RunOutput};
use crate::display::Displayed;
use crate::hint::{Hint, Surface};
use crate::spool::{Spool, Spooled};

/// An output whose hint nobody has put into words yet: only a surface knows by which flag or
/// parameter its reader can follow it.
#[derive(Debug)]
pub struct Unworded {
    pub(super) output: RunOutput,
    pub(super) hint: Option<Hint>,
}

impl Unworded {
    pub fn stdout(&self) -> &str {
        &self.output.stdout
    }

    pub fn stderr(&self) -> &str {
        &self.output.stderr
    }

    /// A copy to be written down: pictures without their bytes, and no hint, which would be in the words of one surface.
    pub fn record(&self) -> RunOutput {
        let it = &self.output;
        RunOutput {
            status: it.status,
            exit_code: it.exit_code,
            signal: it.signal.clone(),
            stdout: it.stdout.clone(),
            stderr: it.stderr.clone(),
            files: it.files.clone(),
            deleted: it.deleted.clone(),
            session: it.session.clone(),
            image: it.image.as_ref().map(|image| ImageOutput {
                data: Vec::new(),
                ..*image
            }),
            value: it.value.clone(),
            page: None,
            shell_code: it.shell_code,
            displays: it.displays.iter().map(Displayed::without_data).collect(),
            saved: Vec::new(),
            truncated: it.truncated,
            total_bytes: it.total_bytes.clone(),
            error: it.error.clone(),
            language: it.language.clone(),
            detected: it.detected.clone(),
            runtime: it.runtime.clone(),
            compile: it.compile.clone(),
            packages: it.packages.clone(),
            duration_ms: it.duration_ms,
            usage: it.usage.clone(),
            network: it.network.clone(),
            calls: it.calls.clone(),
            notes: it.notes.clone(),
            isolation: it.isolation.clone(),
        }
    }

    pub fn words(self, surface: Surface) -> RunOutput {
        let mut output = self.output;
        let hint = self.hint.map(|hint| hint.words(surface));
        match &mut output.error {
            Some(error) => error.hint = hint,
            None => output.notes.extend(hint),
        }
        output
    }

    /// What it showed that is not all in the answer, each with its name as part of a run.
    pub fn shown_contents(&self) -> Vec<(String, Spooled)> {
        let numbered = self.output.displays.iter().enumerate();
        let others = numbered.filter(|(_, it)| !it.is_whole_text());
        let content = |(at, it): (usize, &Displayed)| {
            let mut spool = Spool::default();
            spool.add(&it.data);
            Some((display_name(at, it), spool.finish().ok()?))
        };
        others.filter_map(content).collect()
    }

    /// The same with the addresses of what is stored of it, by name.
    pub fn with_stored(mut self, stored: &[(String, String)]) -> Self {
        let address = |name: String| {
            let found = stored.iter().find(|(other, _)| *other == name);
            found.map(|(_, address)| address.clone())
        };
        for file in &mut self.output.files {
            file.uri = address(format!("files/{}", file.name));
        }
        for (at, displayed) in self.output.displays.iter_mut().enumerate() {
            displayed.uri = address(display_name(at, displayed));
        }
        self
    }

    /// The same as the answer to a call of a session, with what its caller should know of that.
    pub fn in_session(mut self, name: String, notes: impl IntoIterator<Item = String>) -> Self {
        self.output.session = Some(name);
        self.output.notes.extend(notes);
        self
    }

    /// The same with the version of its runtime.
    pub fn with_version(mut self, version: Option<String>) -> Self {
        if let Some(runtime) = &mut self.output.runtime {
            runtime.version = version;
        }
        self
    }
}

fn display_name(at: usize, displayed: &Displayed) -> String {
    format!("display/{}.{}", at + 1, displayed.kind.extension())
}
