//! `hotcell run`.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::{BAD_INPUT, LOW_LIMITS, OUR_FAILURE, complain, explain, show, told};
use crate::cell::Requirement;
use crate::engine::{Engine, Rejected};
use crate::hint;
use crate::language::Surroundings;
use crate::output::{RunOutput, Verdict};
use crate::plan::RunPlan;
use crate::request::{
    AskedLimits, AskedPackages, InputFile, Network, RequestError, RunRequest, check_mount,
    check_variable, parse_count, parse_cpus, parse_duration, parse_mount, parse_size,
};
use crate::run::{OutputEvent, RunResult, StartError, Stdin, Stream, Surface, picture_kind};

const HERE: hint::Surface = hint::Surface::CommandLine;

const EXIT_CODES: &str = "\
Exit codes:
  N      the program's own exit code
  128+N  the program was ended by signal N
  124    it was ended at its time limit
  122    it was ended at its memory limit
  123    it was ended because it printed too much
  125    hotcell could not run it, or lost it
  2      the arguments cannot be used; nothing was run
  130    interrupted";

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// The program's file, or a language; without it and without -c, standard input is the program
    file: Option<PathBuf>,
    /// After a language: the program itself
    #[arg(value_name = "CODE", conflicts_with_all = ["code", "program"])]
    inline: Option<String>,
    /// The program's file, where the first word is a language
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "code")]
    program: Option<PathBuf>,
    /// The program itself
    #[arg(short, long, value_name = "CODE", conflicts_with = "file")]
    code: Option<String>,
    /// Its language; else its `#!` line, the file's name or its looks tell
    #[arg(short, long, value_name = "NAME")]
    language: Option<String>,
    /// What shall run it: `embedded`, or a runtime's command such as `node`
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// An environment variable for the program; a name alone passes our own (repeat for more)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A file or folder of the host to place in the workspace (repeat for more)
    #[arg(long = "file", value_name = "HOST[:CELL]")]
    files: Vec<String>,
    /// A package to install before, as in requests or 'numpy<3'; what is imported comes by itself (repeat for more)
    #[arg(long = "package", value_name = "NAME", group = "naming")]
    packages: Vec<String>,
    /// The same as a JSON object of imports and packages
    #[arg(short = 'p', long = "packages", value_name = "JSON", group = "naming")]
    package_map: Option<String>,
    /// The file with a lock from an earlier result: exactly those packages
    #[arg(long, value_name = "FILE", group = "naming")]
    lock: Option<PathBuf>,
    /// Install no package
    #[arg(long, group = "naming")]
    no_packages: bool,
    /// Fetch nothing: use only packages that are installed already
    #[arg(long)]
    offline: bool,
    /// Hosts that it may reach, as in api.example.com,*.example.org:8443; or all [default: none]
    #[arg(long, value_name = "HOSTS")]
    network: Vec<String>,
    /// A folder of the host that it sees as it is, read-only with :ro (repeat for more)
    #[arg(long = "mount", value_name = "HOST:CELL[:ro]")]
    mounts: Vec<String>,
    /// The same as --mount, in two words
    #[arg(long, value_name = "HOST", hide = true)]
    nodefs_root: Option<PathBuf>,
    #[arg(long, value_name = "CELL", hide = true, requires = "nodefs_root")]
    nodefs_mount: Option<String>,
    /// End the program after this time, as in 30, 1m, 1500ms [default: 30s]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    timeout: Option<String>,
    /// Memory for the whole cell, as in 512m, 1g [default: 512m]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    memory: Option<String>,
    /// Processes and threads at a time [default: 128]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pids: Option<String>,
    /// Processors' worth of time [default: 1.0]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    cpus: Option<String>,
    /// End the program when it has printed more than this [default: 256m]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    output_limit: Option<String>,
    /// Print the whole result as JSON when the program has ended
    #[arg(long)]
    json: bool,
    /// Print what would be run, as JSON, and run nothing
    #[arg(long)]
    plan: bool,
    /// Refuse to run unless every wall of the sandbox stands
    #[arg(long, value_name = "LEVEL", value_parser = ["strict"], conflicts_with = "allow_reduced")]
    require: Option<String>,
    /// Run even if this host cannot build a wall that confines the program
    #[arg(long)]
    allow_reduced: bool,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

/// An engine that starts what most cells need while the arguments are still being
/// read, if they look as if one will be run.
pub fn start_early() -> Option<Engine> {
    let mut words = std::env::args_os().skip(1);
    let is_run = words.next()? == "run" && words.all(|word| word != "--plan");
    is_run.then(Engine::early)
}

pub fn main(arguments: Arguments, engine: Option<Engine>) -> ExitCode {
    let json = arguments.json;
    let engine = engine.unwrap_or_else(|| Engine::new(Surroundings::from_env()));
    let (plan, stdin) = match prepare(&engine, &arguments) {
        Ok(prepared) => prepared,
        Err(rejected) => {
            let message = told(&rejected);
            if json {
                print_json(&RunOutput::of_rejected(&rejected, message).words(HERE));
            } else {
                explain(&message, rejected.hint(), HERE);
            }
            return BAD_INPUT.into();
        }
    };
    if arguments.plan {
        print_json(&plan);
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("could not start: {error}"), Some(LOW_LIMITS));
            return OUR_FAILURE.into();
        }
    };
    let requirement = match (arguments.require, arguments.allow_reduced) {
        (Some(_), _) => Requirement::Strict,
        (None, true) => Requirement::Reduced,
        (None, false) => Requirement::Confined,
    };
    // Nothing else waits for this thread yet, so it may as well block.
    let result = engine
        .warm_up(&plan)
        .and_then(|()| runtime.block_on(execute(&engine, &plan, stdin, requirement, json)));
    let version = json.then(|| engine.version(&plan)).flatten();
    engine.leave();
    report(&plan, result, version, json)
}

/// What to run, and whether our standard input is the program's.
fn prepare(engine: &Engine, arguments: &Arguments) -> Result<(RunPlan, bool), Rejected> {
    // A file of that name comes first; nobody has one called `py`.
    let first = arguments.file.as_deref().filter(|file| !file.exists());
    let named = first
        .and_then(Path::to_str)
        .filter(|it| engine.registry().find(it).is_ok());
    let (code, name, stdin) = read_code(arguments, named.is_some())?;
    let number = |text: &Option<String>| text.clone();
    let limits = AskedLimits {
        timeout: number(&arguments.timeout)
            .map(|t| parse_duration(&t))
            .transpose()?,
        memory: number(&arguments.memory)
            .map(|t| parse_size(&t))
            .transpose()?,
        tasks: number(&arguments.pids)
            .map(|t| parse_count(&t))
            .transpose()?,
        cpus: number(&arguments.cpus)
            .map(|t| parse_cpus(&t))
            .transpose()?,
        output: number(&arguments.output_limit)
            .map(|t| parse_size(&t))
            .transpose()?,
    };
    let files = arguments
        .files
        .iter()
        .map(|file| InputFile::from_argument(file));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let env = arguments
        .env
        .iter()
        .map(|variable| match variable.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => own_variable(variable),
        });
    let env = env.collect::<Result<Vec<_>, _>>()?;
    let network = arguments.network.iter().flat_map(|list| list.split(','));
    let network = Network::from_words(network.map(str::trim)).map_err(RequestError::from)?;
    let mounts = arguments.mounts.iter().map(|mount| parse_mount(mount));
    let mut mounts = mounts.collect::<Result<Vec<_>, _>>()?;
    if let Some(root) = &arguments.nodefs_root {
        let usual = root.to_string_lossy();
        let place = arguments.nodefs_mount.as_deref().unwrap_or(&usual);
        mounts.push(check_mount(root, place, jail::Access::Write)?);
    }
    let mut request = RunRequest::new(code)?
        .args(arguments.arguments.iter().cloned())?
        .env(env)?
        .files(files)?
        .packages(asked_packages(arguments)?)?
        .offline(arguments.offline)
        .limits(limits)?
        .mounts(mounts)?
        .network(network);
    if let Some(language) = arguments.language.as_deref().or(named) {
        request = request.language(language);
    }
    if let Some(engine) = &arguments.engine {
        request = request.engine(engine);
    }
    if let Some(name) = name {
        request = request.named(name);
    }
    Ok((engine.plan(request)?, stdin))
}

fn asked_packages(arguments: &Arguments) -> Result<AskedPackages, RequestError> {
    if let Some(lock) = &arguments.lock {
        let text = std::fs::read_to_string(lock).map_err(|source| RequestError::HostFile {
            path: lock.clone(),
            source,
        })?;
        return Ok(AskedPackages::Lock(text));
    }
    if let Some(map) = &arguments.package_map {
        let read = serde_json::from_str(map).map(AskedPackages::Map);
        return read.map_err(|_| RequestError::BadNumber {
            value: map.clone(),
            expected: "a JSON object of imports and packages",
            example: "{\"sklearn\": \"scikit-learn\"}",
        });
    }
    Ok(
        match (arguments.no_packages, arguments.packages.is_empty()) {
            (false, true) => AskedPackages::Detect,
            _ => AskedPackages::List(arguments.packages.clone()),
        },
    )
}

/// A bare name takes our own value, by explicit wish of the caller.
fn own_variable(name: &str) -> Result<(String, String), RequestError> {
    check_variable(name, "")?;
    let unset = |_| RequestError::Unset(name.to_owned());
    Ok((name.to_owned(), std::env::var(name).map_err(unset)?))
}

/// The program, its name if it has one, and whether our standard input is left for it to read.
fn read_code(
    arguments: &Arguments,
    is_language: bool,
) -> Result<(Vec<u8>, Option<&Path>, bool), RequestError> {
    let ours = Path::new("-");
    if let Some(inline) = arguments.inline.as_deref().filter(|_| is_language) {
        return Ok((inline.as_bytes().to_vec(), None, true));
    }
    if let Some(inline) = &arguments.inline {
        // Nothing is guessed: the first word is neither a file nor a language.
        return Err(RequestError::HostFile {
            path: arguments.file.clone().unwrap_or_else(|| inline.into()),
            source: io::Error::other("it is neither a language nor a file"),
        });
    }
    let file = match is_language {
        true => arguments.program.as_deref(),
        false => arguments.program.as_deref().or(arguments.file.as_deref()),
    };
    match (&arguments.code, file.filter(|file| *file != ours)) {
        (Some(code), _) => Ok((code.clone().into_bytes(), None, true)),
        (None, Some(file)) => {
            let code = std::fs::read(file).map_err(|source| RequestError::HostFile {
                path: file.to_owned(),
                source,
            })?;
            Ok((code, Some(file), true))
        }
        (None, None) if file.is_none() && io::stdin().is_terminal() => Err(RequestError::EmptyCode),
        (None, None) => {
            let mut code = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut code);
            read.map_err(|source| RequestError::HostFile {
                path: "standard input".into(),
                source,
            })?;
            Ok((code, None, false))
        }
    }
}

/// Passes our standard input on as it comes.
///
/// Never the descriptor itself: a program must not hold anything of our terminal.
fn own_stdin() -> Result<Stdin, StartError> {
    let null = rustix::fs::makedev(1, 3);
    if rustix::fs::fstat(io::stdin()).is_ok_and(|stdin| stdin.st_rdev == null) {
        return Ok(Stdin::Empty);
    }
    let (pieces, received) = mpsc::channel(4);
    // The thread may wait in a read for ever; it ends with the process.
    start_thread(move || {
        let mut stdin = io::stdin().lock();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match stdin.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    if pieces.blocking_send(buffer[..read].to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(Stdin::Stream(received))
}

fn start_thread(work: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
    let started = thread::Builder::new().spawn(work);
    started.map(drop).map_err(StartError::Thread)
}

async fn execute(
    engine: &Engine,
    plan: &RunPlan,
    stdin: bool,
    requirement: Requirement,
    json: bool,
) -> Result<RunResult, StartError> {
    let (events, received) = mpsc::channel(16);
    let unheard = Arc::new(Notify::new());
    let stopped = interrupted(unheard.clone());
    let stdin = if stdin { own_stdin()? } else { Stdin::Empty };
    let surface = Surface {
        stdin,
        events,
        requirement,
        door: None,
    };
    let printing = async {
        if json {
            drop(received);
        } else {
            print(received, &unheard).await;
        }
    };
    // All of the output, however slow its reader is, unless we are told to stop.
    let printing = async {
        tokio::select! {
            () = printing => {}
            () = until(stopped.clone()) => {}
        }
    };
    let running = engine.run(plan, surface, until(stopped.clone()));
    tokio::join!(running, printing).0
}

/// Writes output out as it comes, until there is none or nobody reads it.
async fn print(mut events: mpsc::Receiver<OutputEvent>, unheard: &Notify) {
    while let Some(event) = events.recv().await {
        if let Some(kind) = unreadable(&event) {
            let hint = "Send it to a file: `hotcell run ... > picture`.";
            let message = format!("the program prints a picture ({kind})");
            complain(&message, Some(hint));
            while events.recv().await.is_some() {}
            return;
        }
        if !can_write_at_once(&event) {
            let (done, printed) = oneshot::channel();
            // The thread may wait in a write for ever; it ends with the process.
            let work = move || drop(done.send(print_slowly(event, events)));
            if start_thread(work).is_err() || matches!(printed.await, Ok(Err(_))) {
                unheard.notify_one();
            }
            return;
        }
        if write(&event).is_err() {
            unheard.notify_one();
            return;
        }
    }
}

/// The kind of a picture that a terminal would take for commands.
fn unreadable(event: &OutputEvent) -> Option<&'static str> {
    let kind = picture_kind(&event.bytes).filter(|_| event.stream == Stream::Stdout);
    kind.filter(|_| io::stdout().is_terminal())
}

/// Whether a write will not wait for a reader: this thread has a program to watch.
fn can_write_at_once(event: &OutputEvent) -> bool {
    // A pipe that polls writable has room for so much.
    const PIPE_BUF: usize = 4096;
    let ready = |fd: BorrowedFd<'_>| {
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1))
    };
    event.bytes.len() <= PIPE_BUF
        && match event.stream {
            Stream::Stdout => ready(io::stdout().as_fd()),
            Stream::Stderr | Stream::Notice | Stream::Progress => ready(io::stderr().as_fd()),
        }
}

fn print_slowly(first: OutputEvent, mut events: mpsc::Receiver<OutputEvent>) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(event) = next {
        write(&event)?;
        next = events.blocking_recv();
    }
    Ok(())
}

fn write(event: &OutputEvent) -> io::Result<()> {
    match event.stream {
        Stream::Stdout => write_all(&mut io::stdout().lock(), &event.bytes),
        Stream::Stderr => write_all(&mut io::stderr().lock(), &event.bytes),
        Stream::Notice => {
            show(b"");
            complain(&String::from_utf8_lossy(&event.bytes), None);
            Ok(())
        }
        Stream::Progress => {
            show(&event.bytes);
            Ok(())
        }
    }
}

fn write_all(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

/// Becomes true on Ctrl-C, a polite request to end, or when nobody reads the output.
fn interrupted(unheard: Arc<Notify>) -> watch::Receiver<bool> {
    let signals = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let mut signals = signals.map(|kind| signal(kind).ok());
    let (stop, stopped) = watch::channel(false);
    // Ends with the runtime.
    tokio::spawn(async move {
        let [interrupt, terminate, hangup] = &mut signals;
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
            () = received(hangup) => {}
            () = unheard.notified() => {}
        }
        let _ = stop.send(true);
    });
    stopped
}

async fn until(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending().await
    }
}

pub(super) async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

fn report(
    plan: &RunPlan,
    result: Result<RunResult, StartError>,
    version: Option<String>,
    json: bool,
) -> ExitCode {
    match result {
        Ok(result) => {
            let verdict = Verdict::of(plan, &result);
            let output = RunOutput::of_result(plan, result)
                .with_version(version)
                .words(HERE);
            if json {
                print_json(&output);
            } else {
                for line in output.refusals(HERE) {
                    complain(&line, None);
                }
                for note in &output.notes {
                    complain(note, None);
                }
                // A program that failed by itself has said why; the rest is for us to say.
                if let Some(error) = output.error.filter(|_| !verdict.is_said) {
                    complain(&error.message, error.hint.as_deref());
                }
            }
            verdict.shell_code.into()
        }
        Err(error) => {
            if json {
                print_json(&RunOutput::of_start_error(plan, &error).words(HERE));
            } else {
                explain(&error.to_string(), error.hint(), HERE);
            }
            OUR_FAILURE.into()
        }
    }
}

fn print_json(value: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        let _ = writeln!(io::stdout().lock(), "{text}");
    }
}
