//! Calls that share one context, each evaluated as at a prompt.

use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, Function, Object, Promise, Value};

use super::report::{not_a_program, thrown};
use super::{Failed, Files, World, in_world, path_of, preload, turn};
use crate::Program;
use crate::script::{self, Dialect};
use crate::session::{Done, INTERRUPTED, serve};

/// How long the jobs that promises have left may take to end. The engine looks at each ten thousandth step of them whether it shall stop, so
/// a chain without an end is stopped within milliseconds; before this is over the server would end us.
const MOST_LEFT: Duration = Duration::from_secs(1);

/// The script with `display`, and the folder of what a call shows, which is that call's alone.
const DISPLAY: &str = "/workspace/.home/.hotcell/display.cjs";
const SHOWN: &str = "/workspace/.home/.hotcell/display";

pub fn javascript_session(program: &Program) -> Result<u8, Failed> {
    session(program, Dialect::JavaScript)
}

pub fn typescript_session(program: &Program) -> Result<u8, Failed> {
    session(program, Dialect::TypeScript)
}

fn session(program: &Program, dialect: Dialect) -> Result<u8, Failed> {
    let files = Files::new(path_of(program)?, dialect, None);
    let files = Rc::new(files.stoppable((program.interrupts)()));
    in_world(program, &files, |world| {
        serve(program, |call| evaluate(world, call))
    })
}

/// Runs a call until nothing is left to wait for, or it shall stop; with its value as text.
fn evaluate(world: &World<'_, '_>, call: &Program) -> Result<Done, Failed> {
    let done = attempt(world, call);
    let stopped = world.files.go_on();
    if stopped.is_err() {
        abandon(world);
    }
    stopped.and(done)
}

/// Forgets what a call that was stopped has left to do. One that cannot be brought to an end takes the session with it.
fn abandon(world: &World<'_, '_>) {
    // What runs for long is still stopped here.
    let started = Instant::now();
    while world.ctx.execute_pending_job() {
        if started.elapsed() > MOST_LEFT {
            std::process::exit(INTERRUPTED.into());
        }
    }
    world.files.take_up();
    let forget: rquickjs::Result<Function> = world.control.get("forget");
    // Without its own code the engine says so in the next call.
    drop(forget.and_then(|forget| forget.call::<_, ()>(())));
}

fn attempt(world: &World<'_, '_>, call: &Program) -> Result<Done, Failed> {
    let World {
        ctx,
        control,
        files,
        ..
    } = *world;
    let source = call.text()?;
    for shown in fs::read_dir(SHOWN).into_iter().flatten().flatten() {
        let _ = fs::remove_file(shown.path());
    }
    if source.contains("display(") && Path::new(DISPLAY).exists() {
        preload(world, DISPLAY)?;
    }
    // Beside the program's other files, which it names from there.
    let name = Path::new(&call.file).file_name().unwrap_or_default();
    let path = files.main.with_file_name(name);
    let script = script::read(&path, source, files.dialect)
        .map_err(|broken| not_a_program(&path, source, &broken))?;
    let name = path.to_string_lossy().into_owned();
    files.remember(&name, script.places, 0);
    let fail = |error| thrown(control, error, files);
    let prompt = || -> rquickjs::Result<Promise<'_>> {
        let prompt: Function = control.get("prompt")?;
        let code: String = prompt.call((script.code,))?;
        let mut options = EvalOptions::default();
        options.strict = false;
        options.promise = true;
        options.filename = Some(name);
        ctx.eval_with_options(code, options)
    };
    let promise = prompt().catch(ctx).map_err(fail)?;
    let code = turn(world, Some(promise.clone()))?;
    let shown = || -> rquickjs::Result<String> {
        let mut value = match promise.result::<Object>() {
            Some(result) => result?.get::<_, Value>("value")?,
            None => return Ok(String::new()),
        };
        if let Some(later) = value.as_promise() {
            match later.result::<Value>() {
                Some(result) => value = result?,
                None => return Ok(String::new()),
            }
        }
        let shown: Function = control.get("shown")?;
        shown.call((value, DISPLAY))
    };
    let value = shown().catch(ctx).map_err(fail)?;
    Ok(Done { code, value })
}

/// How often a session looks while it waits whether it shall stop, in milliseconds.
const LOOK: f64 = 50.0;

impl Files {
    /// An error if the call that runs shall stop.
    pub(super) fn go_on(&self) -> Result<(), Failed> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Failed {
                code: INTERRUPTED,
                message: "Interrupted".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The same for a session whose calls stop when this is set.
    fn stoppable(self, stop: &'static AtomicBool) -> Self {
        let stop = Some(stop);
        Self { stop, ..self }
    }

    /// The next call may run.
    fn take_up(&self) {
        self.stop
            .inspect(|stop| stop.store(false, Ordering::Relaxed));
    }

    /// How long to wait at once; below 0 is for ever.
    pub(super) fn at_most(&self, wait: f64) -> f64 {
        match self.stop {
            Some(_) if !(0.0..=LOOK).contains(&wait) => LOOK,
            _ => wait,
        }
    }
}
