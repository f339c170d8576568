//! A program that an engine of ours prepares for its runtime, in a cell of its own, so that one can go on with it that has started already.

use std::time::Duration;

use super::{BUILD_FOLDER, HOME};
use crate::cell::{Launch, Prestart};
use crate::language::{Definition, Runtime};
use crate::request::{CellPath, FileSource, InputFile};

/// What is done before such a program starts.
///
/// SECURITY: an engine that reads a stranger's program is a program like any other. It gets that text, with the files of its language beside it,
/// and nothing else; what it makes is only bytes to us, and goes only into the cell that runs the same text.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// The engine's own.
    pub launch: Launch,
    /// The runtime that waits for the first of the files one of which it makes.
    prestart: Prestart,
    made: Vec<CellPath>,
}

/// Most take a few milliseconds. One that takes longer is prepared where it runs, with all the time of its run.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Preparation {
    /// Of a run that could go on with `launch.prestart`, if its program were prepared; the launch is left with what does both.
    pub fn take(definition: &Definition, runtime: &Runtime, launch: &mut Launch) -> Option<Self> {
        let engine = runtime.way.embedded.as_ref()?;
        let program = launch.files.first()?;
        if runtime.way.prepared.is_empty() {
            return None;
        }
        let words = [jail::ENGINE, engine, program.path.as_str()];
        let folder = CellPath::parse(BUILD_FOLDER).ok()?;
        let empty = InputFile {
            path: folder.clone(),
            source: FileSource::EmptyFolder,
            mode: 0o755,
        };
        let is_ours = |it: &&InputFile| it.path.as_str().starts_with(HOME);
        let beside = launch.files[1..].iter().filter(|it| !is_ours(it));
        // What it does not read it has to find all the same: a name may mean one file or another.
        let beside = beside.map(|it| match it.source {
            FileSource::EmptyFolder => it.clone(),
            _ if definition.owns(it.path.as_str()) => it.clone(),
            _ => InputFile::from_bytes(it.path.clone(), []),
        });
        let own = Launch::new(words.map(str::to_owned).to_vec())
            .env(launch.env.clone())
            .files([program.clone(), empty])
            .files(beside)
            .limits(launch.limits.clone())
            .timeout(TIMEOUT)
            .collect(folder);
        Some(Self {
            launch: own,
            prestart: launch.prestart.take()?,
            made: runtime.way.prepared.clone(),
        })
    }

    /// The run's launch with what the engine made; nothing if that is none of what it makes.
    pub fn finish(&self, mut launch: Launch, collected: Vec<InputFile>) -> Option<Launch> {
        let (first, mut prestart) = (self.made.first()?, self.prestart.clone());
        let files: Vec<InputFile> = collected.into_iter().map(placed).collect::<Option<_>>()?;
        let is_made = |made: &&CellPath| files.iter().any(|file| file.path == **made);
        let made = self.made.iter().find(is_made)?;
        let is_taken = |file: &InputFile| launch.files.iter().any(|it| it.is_in_the_way_of(file));
        if files.iter().any(is_taken) {
            return None;
        }
        let zygote = &mut prestart.zygote;
        zygote.script = made.as_str().into();
        for word in &mut zygote.argv {
            if word == format!("/workspace/{first}").as_str() {
                *word = format!("/workspace/{made}").into();
            }
        }
        let words = zygote.argv.iter();
        launch.argv = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        launch.prestart = Some(prestart);
        Some(launch.files(files))
    }
}

/// A file where the program finds it, of one that the engine has left for that.
fn placed(mut file: InputFile) -> Option<InputFile> {
    let inner = file.path.as_str().strip_prefix(BUILD_FOLDER)?;
    file.path = CellPath::parse(inner.strip_prefix('/')?).ok()?;
    Some(file)
}
