//! The calls that the engine's own JavaScript makes into Rust.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use rquickjs::context::EvalOptions;
use rquickjs::{
    Coerced, Ctx, Error, Exception, Function, Module, Object, Result, TypedArray, Value,
};

use super::fetch::Requests;
use super::packages::Asked;
use super::{Files, Program, Unreadable};
use super::{address, modules};

/// Before a script, on its first line: what node hands to each.
const WRAPPER: &str = "(function (exports, require, module, __filename, __dirname) { ";

/// The object that `boot.js` is called with.
pub fn object<'js>(
    ctx: &Ctx<'js>,
    program: &Program,
    files: &Rc<Files>,
    requests: &Rc<Requests>,
) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    let main = files.main.to_string_lossy().into_owned();
    let cwd = files.main.parent().unwrap_or(Path::new("/"));
    host.set("file", main)?;
    host.set("cwd", cwd.to_string_lossy().into_owned())?;
    host.set("args", program.args.clone())?;
    host.set("arch", std::env::consts::ARCH.replace("x86_64", "x64"))?;
    host.set("pid", std::process::id())?;
    host.set("version", super::VERSION)?;
    let env = Object::new(ctx.clone())?;
    for (name, value) in std::env::vars() {
        env.set(name, value)?;
    }
    host.set("env", env)?;
    let started = Instant::now();
    let now = move || started.elapsed().as_secs_f64() * 1000.0;
    host.set("now", Function::new(ctx.clone(), now)?)?;
    host.set(
        "exit",
        Function::new(ctx.clone(), |code: f64| -> () {
            std::process::exit(code as i32)
        })?,
    )?;
    host.set(
        "library",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, name: String| {
            modules::library(&ctx, &name)
        })?,
    )?;
    places(ctx, &host, files)?;
    input_and_output(ctx, &host)?;
    text(ctx, &host)?;
    let requests = requests.clone();
    let fetch = move |id: u32,
                      method: String,
                      url: String,
                      headers: Vec<Vec<String>>,
                      body: Option<String>| {
        requests.start(id, method, &url, headers, body.as_deref().map(bytes));
    };
    host.set("fetch", Function::new(ctx.clone(), fetch)?)?;
    Ok(host)
}

fn places<'js>(ctx: &Ctx<'js>, host: &Object<'js>, files: &Rc<Files>) -> Result<()> {
    let known = files.clone();
    let place = move |name: String, line: f64, column: f64| {
        let (line, column) = known.place(&name, line as u32, column as u32);
        vec![line, column]
    };
    host.set("place", Function::new(ctx.clone(), place)?)?;
    let known = files.clone();
    let resolve = move |from: String, name: String| {
        let found = known.resolve(Path::new(&from), &name, Asked::Require);
        found.map(|path| path.to_string_lossy().into_owned())
    };
    host.set("resolve", Function::new(ctx.clone(), resolve)?)?;
    let of_node = |name: String| modules::is_of_node(&name);
    host.set("isOfNode", Function::new(ctx.clone(), of_node)?)?;
    let known = files.clone();
    let compile = move |ctx: Ctx<'js>, name: String| compile(&ctx, &known, name);
    host.set("compile", Function::new(ctx.clone(), compile)?)
}

/// A script as the function that node makes of it; a module as what it exports.
fn compile<'js>(ctx: &Ctx<'js>, files: &Files, name: String) -> Result<Value<'js>> {
    let script = files.read(Path::new(&name)).map_err(|why| match why {
        Unreadable::File(error) => refused(ctx, &error, "open", &name),
        Unreadable::Broken(broken) => {
            Exception::throw_syntax(ctx, &format!("{} ({name})", broken.message))
        }
    })?;
    if script.is_module {
        return match Module::import(ctx, name)?.finish() {
            // What waits for something cannot be required, in node neither.
            Err(Error::WouldBlock) => {
                let message = "require() cannot be used on an ESM graph with top-level await. Use import() instead.";
                Err(Exception::throw_message(ctx, message))
            }
            exported => exported,
        };
    }
    // A `#!` line is a comment only where a program starts.
    let code = match script.code.strip_prefix("#!") {
        Some(rest) => format!("//{rest}"),
        None => script.code,
    };
    let code = if code.starts_with("//") {
        format!(
            "{WRAPPER}\n{}\n}})",
            code.split_once('\n').map_or("", |(_, rest)| rest)
        )
    } else {
        format!("{WRAPPER}{code}\n}})")
    };
    files.remember(&name, script.places, WRAPPER.len() as u32);
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name);
    ctx.eval_with_options(code, options)
}

fn input_and_output<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    let write = |ctx: Ctx<'js>, fd: i32, text: String| put(&ctx, fd, text.as_bytes());
    host.set("write", Function::new(ctx.clone(), write)?)?;
    let write = |ctx: Ctx<'js>, fd: i32, binary: String| put(&ctx, fd, &bytes(&binary));
    host.set("writeBytes", Function::new(ctx.clone(), write)?)?;
    let read = |ctx: Ctx<'js>, file: Value<'js>| -> Result<TypedArray<'js, u8>> {
        let mut bytes = Vec::new();
        let (result, name) = match file.as_int() {
            Some(0) => (
                io::stdin().lock().read_to_end(&mut bytes),
                "/dev/stdin".to_owned(),
            ),
            Some(fd) => (Err(io::ErrorKind::Unsupported.into()), fd.to_string()),
            None => {
                let path = file.get::<Coerced<String>>()?.0;
                (
                    File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)),
                    path,
                )
            }
        };
        result.map_err(|error| refused(&ctx, &error, "open", &name))?;
        TypedArray::new(ctx, bytes)
    };
    host.set("readFile", Function::new(ctx.clone(), read)?)?;
    let write = |ctx: Ctx<'js>, path: String, binary: String, append: bool| {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(append)
            .truncate(!append)
            .open(&path);
        let written = file.and_then(|mut file| file.write_all(&bytes(&binary)));
        written.map_err(|error| refused(&ctx, &error, "open", &path))
    };
    host.set("writeFile", Function::new(ctx.clone(), write)?)?;
    host.set(
        "exists",
        Function::new(ctx.clone(), |path: String| Path::new(&path).exists())?,
    )?;
    let list = |ctx: Ctx<'js>, path: String| -> Result<Vec<String>> {
        let names = fs::read_dir(&path).and_then(|entries| {
            let name = |entry: io::Result<fs::DirEntry>| {
                Ok(entry?.file_name().to_string_lossy().into_owned())
            };
            entries.map(name).collect::<io::Result<Vec<String>>>()
        });
        let mut names = names.map_err(|error| refused(&ctx, &error, "scandir", &path))?;
        names.sort();
        Ok(names)
    };
    host.set("readFolder", Function::new(ctx.clone(), list)?)?;
    let make = |ctx: Ctx<'js>, path: String| {
        fs::create_dir_all(&path).map_err(|error| refused(&ctx, &error, "mkdir", &path))
    };
    host.set("makeFolder", Function::new(ctx.clone(), make)?)?;
    let remove = |ctx: Ctx<'js>, path: String| {
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        let removed = if is_folder {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(|error| refused(&ctx, &error, "unlink", &path))
    };
    host.set("remove", Function::new(ctx.clone(), remove)?)?;
    let rename = |ctx: Ctx<'js>, from: String, to: String| {
        fs::rename(&from, &to).map_err(|error| refused(&ctx, &error, "rename", &from))
    };
    host.set("rename", Function::new(ctx.clone(), rename)?)
}

fn text<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    let encode = |ctx: Ctx<'js>, text: String| TypedArray::<u8>::new(ctx, text.into_bytes());
    host.set("encode", Function::new(ctx.clone(), encode)?)?;
    let decode = |binary: String, fatal: bool| {
        let bytes = bytes(&binary);
        let start = if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        match String::from_utf8_lossy(&bytes[start..]) {
            std::borrow::Cow::Owned(_) if fatal => None,
            text => Some(text.into_owned()),
        }
    };
    host.set("decode", Function::new(ctx.clone(), decode)?)?;
    let random = |ctx: Ctx<'js>, size: usize| {
        let mut bytes = vec![0; size];
        let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        filled.map_err(|error| refused(&ctx, &error, "open", "/dev/urandom"))?;
        TypedArray::<u8>::new(ctx, bytes)
    };
    host.set("random", Function::new(ctx.clone(), random)?)?;
    host.set("url", Function::new(ctx.clone(), address::parts)?)
}

/// A byte for each character: how bytes come from JavaScript.
fn bytes(binary: &str) -> Vec<u8> {
    binary.chars().map(|character| character as u8).collect()
}

fn put(ctx: &Ctx<'_>, fd: i32, bytes: &[u8]) -> Result<()> {
    // Unbuffered: what was printed before a kill must have left the interpreter.
    let written = match fd {
        1 => {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        2 => io::stderr().write_all(bytes),
        _ => Err(io::ErrorKind::Unsupported.into()),
    };
    written.map_err(|error| refused(ctx, &error, "write", &fd.to_string()))
}

/// The kernel's refusal as node words it; `node.js` takes the code out of it.
fn refused(ctx: &Ctx<'_>, error: &io::Error, call: &str, path: &str) -> rquickjs::Error {
    let (code, words) = match error.kind() {
        io::ErrorKind::NotFound => ("ENOENT", "no such file or directory"),
        io::ErrorKind::PermissionDenied => ("EACCES", "permission denied"),
        io::ErrorKind::AlreadyExists => ("EEXIST", "file already exists"),
        io::ErrorKind::IsADirectory => ("EISDIR", "illegal operation on a directory"),
        io::ErrorKind::NotADirectory => ("ENOTDIR", "not a directory"),
        io::ErrorKind::BrokenPipe => ("EPIPE", "broken pipe"),
        io::ErrorKind::StorageFull => ("ENOSPC", "no space left on device"),
        io::ErrorKind::ReadOnlyFilesystem => ("EROFS", "read-only file system"),
        _ => ("EIO", "i/o error"),
    };
    Exception::throw_message(ctx, &format!("{code}: {words}, {call} '{path}'"))
}
