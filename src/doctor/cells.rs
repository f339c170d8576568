//! The cells that the doctor runs its probes in: ordinary ones, each with a launch of its own.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

use super::probe::{MOST, PROGRAM};
use super::question::{FILE, Fact, Question};
use super::witness::{self, Witness};
use crate::cell::{CellError, Launch, Limits, Provider, Requirement};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{self, Ended, Outcome, OutputEvent, Surface};

/// The processes that a cell may have whose probe starts more.
pub const TASKS: u32 = 16;
/// When a probe that never ends is ended.
pub const DEADLINE: Duration = Duration::from_millis(300);

const MIB: u64 = 1 << 20;
/// For probes that end, one way or another, long before.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary as this process can always open it.
const OWN_BINARY: &str = "/proc/self/exe";

/// What a sandbox may have that is to be filled up, beside the probe's own file.
pub const ROOM: Limits = Limits {
    memory: 512 * MIB,
    tasks: 128,
    cpus: 1.0,
    cpu_seconds: 121,
    file_size: 2 * MIB,
    open_files: 64,
    workspace: 8 * MIB,
    workspace_inodes: 256,
    tmp: 8 * MIB,
    shm: 4 * MIB,
};

/// What came of all probes.
pub struct Findings {
    pub result: Ended,
    pub outside: Outside,
    pub memory: Probed,
    pub processes: Probed,
    pub endless: Probed,
    pub fill: Probed,
}

/// What is known outside of the cell that told the facts.
pub struct Outside {
    /// The names of the variables that the probe was given, sorted.
    pub environment: Vec<String>,
    /// Whether it came in where we listened on the host's loopback, if we could.
    pub was_reached: Option<bool>,
    /// What a neighbour has said that locked and took all it could, and was there all the time.
    pub neighbour: Vec<Fact>,
    /// Processes that have the neighbour's uid and are not in its sandbox, if it could be found.
    pub same_uid: Option<usize>,
}

pub type Probed = Result<Probe, CellError>;

/// A probe's end, and how long after its deadline (or its own end) the answer came: everything in its cell was killed by then.
pub struct Probe {
    pub result: Ended,
    pub late: Duration,
}

/// Asks for the facts, then tries the limits. An error means that
/// there was no cell at all.
pub async fn probe(provider: &dyn Provider) -> Result<Findings, CellError> {
    let (result, outside) = probe_facts(provider).await?;

    // Where no control group counts, the probe's own file is counted too.
    let file = std::fs::metadata(OWN_BINARY).map_or(0, |found| found.len());
    let small = Limits {
        memory: 64 * MIB + file,
        ..Limits::default()
    };
    let bytes = small.memory + 64 * MIB;
    let few = Limits {
        tasks: TASKS,
        ..Limits::default()
    };
    let memory = launch(&Question::Memory { bytes }, small, PATIENCE);
    let processes = launch(&Question::Processes { count: TASKS + 8 }, few, PATIENCE);
    let endless = launch(&Question::Endless, Limits::default(), DEADLINE);
    let room = Limits {
        memory: ROOM.memory + file,
        workspace: ROOM.workspace + file,
        ..ROOM
    };
    // Tens of thousands of files, which an emulated machine takes its time for.
    let fill = launch(&Question::Fill, room, 4 * PATIENCE);
    // Two at a time: a slow machine has to make each of them before its patience ends.
    let (memory, processes) = tokio::join!(run(provider, &memory), run(provider, &processes));
    let (endless, fill) = tokio::join!(run(provider, &endless), run(provider, &fill));
    Ok(Findings {
        result,
        outside,
        memory,
        processes,
        endless,
        fill,
    })
}

/// Asks for the facts while another sandbox has locks on all that it sees, and has taken all that it may have.
pub async fn probe_facts(provider: &dyn Provider) -> Result<(Ended, Outside), CellError> {
    let neighbour = launch(&Question::Hoard { most: MOST }, Limits::default(), PATIENCE);
    let (events, heard) = mpsc::channel(64);
    let surface = Surface {
        events,
        ..Surface::silent(Requirement::Reduced)
    };
    let is_there = Cell::new(true);
    let stays = async {
        let _ = run::run(provider, &neighbour, surface, pending()).await;
        is_there.set(false);
        pending::<Infallible>().await
    };
    let asked = async {
        let neighbour = hear(heard).await;
        let held = neighbour.iter().find_map(|fact| match fact {
            Fact::Holds(paths) => Some(paths.clone()),
            _ => None,
        });
        let witness = Witness::stand(held.unwrap_or_default());
        let facts = launch(&witness.question(), Limits::default(), PATIENCE);
        let result = run(provider, &facts).await?.result;
        let outside = Outside {
            environment: facts.env.into_keys().collect(),
            was_reached: witness.was_reached(),
            same_uid: witness::with_the_uid_of(PROGRAM),
            neighbour: match is_there.get() {
                true => neighbour,
                false => Vec::new(),
            },
        };
        Ok((result, outside))
    };
    tokio::select! {
        found = asked => found,
        never = stays => match never {},
    }
}

/// What a neighbour says until it has taken all.
async fn hear(mut heard: mpsc::Receiver<OutputEvent>) -> Vec<Fact> {
    let mut text = Vec::new();
    let is_last = |fact: &Fact| matches!(fact, Fact::Holds(_));
    while let Some(event) = heard.recv().await {
        text.extend(event.bytes);
        let facts = read(&String::from_utf8_lossy(&text));
        if facts.last().is_some_and(is_last) {
            return facts;
        }
    }
    Vec::new()
}

/// The facts that a probe told; a line that is none says nothing.
pub fn facts(result: &Ended) -> Vec<Fact> {
    read(&result.stdout.to_text())
}

fn read(text: &str) -> Vec<Fact> {
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn launch(question: &Question, limits: Limits, timeout: Duration) -> Launch {
    let path = |name| CellPath::parse(name).expect("a plain file name");
    let env = [
        ("HOME", "/workspace/.home"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
    ];
    let question = serde_json::to_vec(question).expect("a question is JSON");
    Launch::new(vec![PROGRAM.to_owned()])
        .env(env.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .files([
            InputFile::from_bytes(path(FILE), question),
            InputFile {
                path: path("hotcell-probe"),
                source: FileSource::HostFile(PathBuf::from(OWN_BINARY)),
                mode: 0o755,
            },
        ])
        .limits(limits)
        .timeout(timeout)
        .output_limit(MIB)
}

async fn run(provider: &dyn Provider, launch: &Launch) -> Probed {
    // The worse the host, the more its doctor is needed.
    let surface = Surface::silent(Requirement::Reduced);
    let result = run::run(provider, launch, surface, pending()).await?;
    let allowed = match result.outcome {
        Outcome::TimedOut => launch.timeout,
        _ => result.duration,
    };
    let late = result.started.elapsed().saturating_sub(allowed);
    Ok(Probe { result, late })
}
