//! Runs a second through the engine itself, with no protocol around it: eight in flight, each
//! with an answer of its own that is checked.
//!
//! `scripts/bench mcp` runs this and puts its figures beside those over MCP. Prints one JSON
//! object, so that they can be compared there.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotcell::caller::Caller;
use hotcell::cell::Requirement;
use hotcell::engine::{Engine, Trust};
use hotcell::language::Surroundings;
use hotcell::request::RunRequest;
use hotcell::run::{Stdin, Surface};
use tokio::sync::mpsc;

const IN_FLIGHT: usize = 8;
/// Each is as many runs as another, so that the baseline can be measured between them.
const ROUNDS: usize = 10;

fn main() {
    jail::hook();
    // `cargo bench` passes `--bench`; a number is how many runs to take.
    let runs: usize = std::env::args()
        .find_map(|word| word.parse().ok())
        .unwrap_or(1000);
    let runtime = event_loop();
    let engine = Arc::new(Engine::warm(Surroundings::from_env(), 8, Trust::Shared));
    let count = runs.div_ceil(ROUNDS);
    let (mut took, mut plain, mut right) = (Vec::new(), Vec::new(), 0);
    // Starts what is started once, and fills what is filled.
    runtime.block_on(round(&engine, count));
    for _ in 0..ROUNDS {
        plain.push(baseline());
        let start = Instant::now();
        right += runtime.block_on(round(&engine, count));
        took.push(start.elapsed());
    }
    let own = own_cpu(count);
    let (round, plain) = (median(took).as_secs_f64(), median(plain).as_secs_f64());
    println!(
        "{{\"engine_runs_per_s\": {:.0}, \"engine_wall_ratio\": {:.4}, \"engine_right_share\": {}, \"engine_own_cpu_ms\": {own:.3}}}",
        count as f64 / round,
        round / count as f64 / plain,
        right as f64 / (count * ROUNDS) as f64
    );
}

/// Makes so many runs; how many gave their own answer.
async fn round(engine: &Arc<Engine>, count: usize) -> usize {
    let next = Arc::new(AtomicUsize::new(0));
    let flights: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (engine, next) = (engine.clone(), next.clone());
            tokio::spawn(async move {
                let mut right = 0;
                while let Some(number) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count)
                {
                    right += usize::from(run(&engine, number).await);
                }
                right
            })
        })
        .collect();
    let mut right = 0;
    for flight in flights {
        right += flight.await.expect("no run panics");
    }
    right
}

/// Whether one run gave its own answer.
async fn run(engine: &Engine, number: usize) -> bool {
    let request = RunRequest::new(format!("print({number} * 7)")).expect("it is a program");
    let Ok(plan) = engine.prepare(request.language("python".to_owned())) else {
        return false;
    };
    let (events, _) = mpsc::channel(16);
    let surface = Surface {
        stdin: Stdin::Empty,
        events,
        requirement: Requirement::default(),
        caller: Caller::local(),
        asking: None,
        console: None,
    };
    let result = engine.run(&plan, surface, std::future::pending()).await;
    result.is_ok_and(|result| result.stdout.to_text() == format!("{}\n", number * 7))
}

/// The milliseconds of CPU that this process spends on a run, one in flight as over MCP,
/// without its cells.
fn own_cpu(count: usize) -> f64 {
    let spent = || -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").expect("our threads");
        let time = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        tasks.flatten().filter_map(time).sum()
    };
    event_loop().block_on(async {
        let engine = Engine::warm(Surroundings::from_env(), 4, Trust::Shared);
        for number in 0..20 {
            run(&engine, number).await;
        }
        let before = spent();
        for number in 0..count {
            assert!(run(&engine, number).await, "run {number}");
        }
        (spent() - before) as f64 / count as f64 / 1e6
    })
}

/// As a server on stdio has it.
fn event_loop() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("an event loop")
}

/// What a run is compared with.
fn baseline() -> Duration {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", "print(1)"]).stdin(Stdio::null());
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let output = command.output().expect("it starts");
        assert_eq!(output.stdout, b"1\n");
        times.push(start.elapsed());
    }
    median(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
