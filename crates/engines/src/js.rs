//! JavaScript and TypeScript by QuickJS, with the globals that programs expect of node.
//!
//! Most of that world is JavaScript itself (`js/lib`); here are the calls it needs, and
//! the event loop.

mod address;
mod fetch;
mod host;
mod modules;
mod node;
mod packages;
mod report;
mod session;
mod value;

use std::cell::RefCell;
use std::collections::HashMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Promise, Runtime, Value,
};

use self::fetch::Requests;
use super::{Failed, Program, ours};
use crate::script::{self, Broken, Dialect, Places, Script};

/// What a program's recursion may use of the thread's stack before it is a RangeError.
/// The crate takes anything larger for "no limit".
const MAX_STACK: usize = 16 << 20;
/// node's exit code for a program that waits for something that never comes.
const UNSETTLED: u8 = 13;
/// How Rust's side finds the handles of `boot.js`.
const CONTROL: &str = "__hotcell";
/// The variable with the scripts that are loaded before the program, with colons between them.
const PRELOAD: &str = "HOTCELL_PRELOAD";
/// The variable with what the program may show.
const SHOWS: &str = "HOTCELL_SHOWS";

pub const VERSION: &str = "0.16.2";

pub use node::for_node;
use report::{not_a_program, thrown, uncaught};
pub use session::{javascript_session, typescript_session};
pub use value::for_value;

/// What is known of the program's files while it runs.
pub struct Files {
    main: PathBuf,
    dialect: Dialect,
    /// The main program as it was read to see what it is, until it is started.
    first: RefCell<Option<Script>>,
    /// Of every file that was rewritten or wrapped.
    places: RefCell<HashMap<String, Written>>,
    /// Set when the call that runs shall stop, in a session.
    stop: Option<&'static AtomicBool>,
    /// What the packages in a folder say of themselves.
    manifests: RefCell<HashMap<PathBuf, Option<Rc<serde_json::Value>>>>,
}

enum Unreadable {
    File(io::Error),
    Broken(Broken),
}

/// How a file's text differs from its source.
struct Written {
    places: Places,
    /// What stands before the source on its first line.
    prefix: u32,
}

pub fn javascript(program: &Program) -> Result<u8, Failed> {
    run(program, Dialect::JavaScript)
}

pub fn typescript(program: &Program) -> Result<u8, Failed> {
    run(program, Dialect::TypeScript)
}

fn run(program: &Program, dialect: Dialect) -> Result<u8, Failed> {
    let source = &value::wanted(program.text()?, dialect);
    let main = path_of(program)?;
    let script = script::read(&main, source, dialect)
        .map_err(|broken| not_a_program(&main, source, &broken))?;
    let is_module = script.is_module;
    let files = Rc::new(Files::new(main, dialect, Some(script)));
    in_world(program, &files, |world| {
        let World { ctx, control, .. } = world;
        let name = files.main.to_string_lossy().into_owned();
        let started = if is_module {
            modules::start(ctx, &files, &name).map(Some)
        } else {
            let start: rquickjs::Result<Function> = control.get("main");
            start
                .and_then(|start| start.call::<_, ()>((name,)))
                .map(|()| None)
        };
        let result = started
            .catch(ctx)
            .map_err(|error| thrown(control, error, &files));
        let code = match result.and_then(|promise| turn(world, promise)) {
            Ok(code) => code,
            Err(failed) => {
                leave(control, failed.code);
                return Err(failed);
            }
        };
        Ok(leave(control, code))
    })
}

/// Where the program lies.
fn path_of(program: &Program) -> Result<PathBuf, Failed> {
    let folder = env::current_dir().map_err(|error| ours(error.to_string()))?;
    Ok(folder.join(&program.file))
}

/// What a program finds around it.
struct World<'a, 'js> {
    ctx: &'a Ctx<'js>,
    control: &'a Object<'js>,
    files: &'a Files,
    requests: &'a Requests,
}

/// Does something where all globals are there, and the script that is loaded before has been.
fn in_world(
    program: &Program,
    files: &Rc<Files>,
    work: impl FnOnce(&World<'_, '_>) -> Result<u8, Failed>,
) -> Result<u8, Failed> {
    let requests = Rc::new(Requests::default());
    let runtime = Runtime::new().map_err(|error| ours(error.to_string()))?;
    runtime.set_max_stack_size(MAX_STACK);
    runtime.set_loader(
        modules::Modules(files.clone()),
        modules::Modules(files.clone()),
    );
    runtime.set_host_promise_rejection_tracker(Some(Box::new(rejected)));
    if let Some(stop) = files.stop {
        runtime.set_interrupt_handler(Some(Box::new(move || stop.load(Ordering::Relaxed))));
    }
    let context = Context::full(&runtime).map_err(|error| ours(error.to_string()))?;
    context.with(|ctx| {
        let broken =
            |error: CaughtError<'_>| ours(format!("the engine's own code failed: {error}"));
        let boot: Function = modules::library(&ctx, "boot").catch(&ctx).map_err(broken)?;
        let host = host::object(&ctx, program, files, &requests)
            .catch(&ctx)
            .map_err(broken)?;
        let control: Object = boot.call((host,)).catch(&ctx).map_err(broken)?;
        ctx.globals()
            .prop(CONTROL, rquickjs::object::Property::from(control.clone()))
            .catch(&ctx)
            .map_err(broken)?;
        let world = World {
            ctx: &ctx,
            control: &control,
            files,
            requests: &requests,
        };
        let first = env::var(PRELOAD).unwrap_or_default();
        for script in first.split(':').filter(|script| !script.is_empty()) {
            preload(&world, script)?;
        }
        work(&world)
    })
}

/// Loads a script of ours, once.
fn preload(world: &World<'_, '_>, script: &str) -> Result<(), Failed> {
    let World { ctx, control, .. } = world;
    let load: rquickjs::Result<Function> = control.get("preload");
    let loaded = load.and_then(|load| load.call::<_, ()>((script,)));
    let loaded = loaded.catch(ctx);
    loaded.map_err(|error| thrown(control, error, world.files))
}

/// Turns the event loop until nothing is left to wait for.
fn turn<'js>(world: &World<'_, 'js>, main: Option<Promise<'js>>) -> Result<u8, Failed> {
    let World {
        ctx,
        control,
        files,
        requests,
    } = *world;
    let get = |name: &str| control.get::<_, Function>(name);
    let (Ok(next), Ok(tick), Ok(unhandled)) = (get("turn"), get("tick"), get("takeUnhandled"))
    else {
        return Err(ours("the engine's own code is gone".to_owned()));
    };
    loop {
        loop {
            files.go_on()?;
            let ticked: bool = tick
                .call(())
                .catch(ctx)
                .map_err(|error| thrown(control, error, files))?;
            let mut worked = false;
            while ctx.execute_pending_job() {
                files.go_on()?;
                worked = true;
            }
            if !ticked && !worked {
                break;
            }
        }
        let lost: Option<String> = unhandled
            .call((rquickjs::function::This(control.clone()),))
            .catch(ctx)
            .map_err(|error| thrown(control, error, files))?;
        if let Some(text) = lost {
            return Err(uncaught(&text, files));
        }
        let wait: f64 = next
            .call((requests.are_pending(),))
            .catch(ctx)
            .map_err(|error| thrown(control, error, files))?;
        if requests.are_pending() {
            if let Some(arrived) = requests.next(files.at_most(wait)) {
                let delivered = arrived.deliver(ctx, control).catch(ctx);
                delivered.map_err(|error| thrown(control, error, files))?;
            }
            continue;
        }
        if wait < 0.0 && !ctx.execute_pending_job() {
            break;
        }
        if wait > 0.0 {
            thread::sleep(Duration::from_secs_f64(files.at_most(wait) / 1000.0));
        }
    }
    let pending = main.is_some_and(|main| main.state() == rquickjs::promise::PromiseState::Pending);
    if pending {
        return Err(Failed {
            code: UNSETTLED,
            message: "Warning: Detected unsettled top-level await".to_owned(),
        });
    }
    Ok(0)
}

/// Tells the program that it ends; the code it ends with.
fn leave(control: &Object<'_>, code: u8) -> u8 {
    let said = control
        .get::<_, Function>("exitCode")
        .and_then(|leave| leave.call::<_, f64>((code,)));
    said.map_or(code, |said| said as i64 as u8)
}

fn rejected<'js>(ctx: Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
    let control = ctx.globals().get::<_, Object>(CONTROL);
    let told = control
        .and_then(|control| control.get::<_, Function>("rejected"))
        .and_then(|tell| tell.call::<_, ()>((promise, reason, is_handled)));
    // Without its own code the engine cannot go on, and says so where it next needs it.
    drop(told);
}

impl Files {
    fn new(main: PathBuf, dialect: Dialect, first: Option<Script>) -> Self {
        Self {
            main,
            dialect,
            first: RefCell::new(first),
            places: RefCell::default(),
            stop: None,
            manifests: RefCell::default(),
        }
    }

    /// A file as QuickJS can take it.
    fn read(&self, path: &Path) -> Result<Script, Unreadable> {
        let first = self.first.borrow_mut().take_if(|_| path == self.main);
        if let Some(script) = first {
            return Ok(script);
        }
        let source = fs::read_to_string(path).map_err(Unreadable::File)?;
        let is_installed = packages::is_installed(path);
        if is_installed && let Some(is_module) = self.kind(path, &source) {
            return Ok(Script::plain(source, is_module));
        }
        match script::read(path, &source, self.dialect(path)) {
            // Old code has what is no JavaScript any more, and QuickJS takes some of it.
            Err(_) if is_installed => Ok(Script::plain(source, false)),
            read => read.map_err(Unreadable::Broken),
        }
    }

    fn remember(&self, name: &str, places: Places, prefix: u32) {
        let written = Written { places, prefix };
        self.places.borrow_mut().insert(name.to_owned(), written);
    }

    /// The source's line and column for those of the text that QuickJS has.
    fn place(&self, name: &str, line: u32, column: u32) -> (u32, u32) {
        match self.places.borrow().get(name) {
            Some(written) => {
                let shift = if line == 1 { written.prefix } else { 0 };
                written
                    .places
                    .find(line, column.saturating_sub(shift).max(1))
            }
            None => (line, column),
        }
    }

    /// The main program's language is the one that was asked for, whatever its file is called.
    fn dialect(&self, path: &Path) -> Dialect {
        if path == self.main {
            self.dialect
        } else {
            Dialect::of(path)
        }
    }
}
