//! The cells that the doctor runs its probes in: ordinary ones, through the engine.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use jail::Limits;
use tokio::sync::mpsc;

use super::probe::PROGRAM;
use super::question::{FILE, Fact, Question};
use super::witness::Witness;
use crate::cell::Requirement;
use crate::engine::Engine;
use crate::language::{By, Failure, LanguageId, Runtime};
use crate::plan::{RunPlan, Source};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{RunResult, StartError, Stdin, Surface};

/// The processes that a cell may have whose probe starts more.
pub const TASKS: u32 = 16;
/// When a probe that never ends is ended.
pub const DEADLINE: Duration = Duration::from_millis(300);

const MIB: u64 = 1 << 20;
/// For probes that end, one way or another, long before.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary as this process can always open it.
const OWN_BINARY: &str = "/proc/self/exe";

/// What came of all probes.
pub struct Findings {
    pub result: RunResult,
    pub outside: Outside,
    pub memory: Probed,
    pub processes: Probed,
    pub endless: Probed,
}

/// What is known outside of the cell that told the facts.
pub struct Outside {
    /// The names of the variables that the probe was given, sorted.
    pub environment: Vec<String>,
    /// Whether it came in where we listened on the host's loopback, if we could.
    pub was_reached: Option<bool>,
}

pub type Probed = Result<Ended, StartError>;

/// A probe's end, and how long after its deadline (or its own end) the answer came.
pub struct Ended {
    pub result: RunResult,
    pub late: Duration,
}

/// Asks for the facts, then tries the three limits at once. An error means that
/// there was no cell at all.
pub async fn probe(engine: &Engine) -> Result<Findings, StartError> {
    let witness = Witness::stand();
    let facts = plan(&witness.question(), Limits::default(), PATIENCE);
    let result = run(engine, &facts).await?.result;
    let outside = Outside {
        environment: facts.env.into_keys().collect(),
        was_reached: witness.was_reached(),
    };
    drop(witness);

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
    let memory = plan(&Question::Memory { bytes }, small, PATIENCE);
    let processes = plan(&Question::Processes { count: TASKS + 8 }, few, PATIENCE);
    let endless = plan(&Question::Endless, Limits::default(), DEADLINE);
    let (memory, processes, endless) = tokio::join!(
        run(engine, &memory),
        run(engine, &processes),
        run(engine, &endless),
    );
    Ok(Findings {
        result,
        outside,
        memory,
        processes,
        endless,
    })
}

/// The facts that a probe told; a line that is none says nothing.
pub fn facts(result: &RunResult) -> Vec<Fact> {
    let text = result.stdout.to_text();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn plan(question: &Question, limits: Limits, timeout: Duration) -> RunPlan {
    let path = |name| CellPath::parse(name).expect("a plain file name");
    let env = [
        ("HOME", "/workspace/.home"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
    ];
    RunPlan {
        language: LanguageId::parse("hotcell-probe").expect("a plain name"),
        chosen: (By::Request, 1.0),
        runtime: Runtime {
            command: "hotcell-probe".to_owned(),
            path: PathBuf::from(OWN_BINARY),
            program: PROGRAM.to_owned(),
            prefix: None,
            libraries: Vec::new(),
            way: Default::default(),
            tools: Vec::new(),
            shown: Vec::new(),
            env: BTreeMap::new(),
        },
        trees: Vec::new(),
        mounts: Vec::new(),
        links: Vec::new(),
        egress: None,
        argv: vec![PROGRAM.to_owned()],
        env: BTreeMap::from(env.map(|(name, value)| (name.to_owned(), value.to_owned()))),
        source: Source {
            path: path(FILE),
            bytes: serde_json::to_vec(question).expect("a question is JSON"),
        },
        files: vec![InputFile {
            path: path("hotcell-probe"),
            source: FileSource::HostFile(PathBuf::from(OWN_BINARY)),
            mode: 0o755,
        }],
        limits,
        timeout,
        output_limit: MIB,
        build: None,
        collect: Vec::new(),
        export: None,
        packages: None,
        servers: Vec::new(),
        wake: String::new(),
        failure: Failure::default(),
        zygote: None,
        weight: 0,
        notes: Vec::new(),
    }
}

async fn run(engine: &Engine, plan: &RunPlan) -> Probed {
    let surface = Surface {
        stdin: Stdin::Empty,
        // Nobody listens: what is kept of the output is enough.
        events: mpsc::channel(1).0,
        // The worse the host, the more its doctor is needed.
        requirement: Requirement::Reduced,
        door: None,
    };
    let over = OnceLock::new();
    let watch = WatchEnd(&over);
    let cancelled = async move {
        let _watch = watch;
        pending().await
    };
    let result = engine.run(plan, surface, cancelled).await?;
    let answered = Instant::now();
    let since = over.get().map_or(Duration::ZERO, |over| answered - *over);
    let missed = result.duration.saturating_sub(plan.timeout);
    Ok(Ended {
        result,
        late: since + missed,
    })
}

/// Notes when it is dropped. A run lets go of its cancellation at the moment it
/// decides that the program is over, before it kills it.
struct WatchEnd<'a>(&'a OnceLock<Instant>);

impl Drop for WatchEnd<'_> {
    fn drop(&mut self) {
        let _ = self.0.set(Instant::now());
    }
}
