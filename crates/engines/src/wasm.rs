//! WebAssembly in its text form, by wasmi.
//!
//! A module with `_start` is a program: it gets the part of WASI that reads arguments
//! and standard input, prints and exits. Of any other module each exported function
//! that takes nothing is called, and its results are printed.

mod wasi;

use std::io::{self, Write};
use std::path::Path;

use wasmi::{Engine, Error, Linker, Module, Store, Val};

use super::{Failed, Program, ours};
use wasi::World;

pub fn run(program: &Program) -> Result<u8, Failed> {
    let path = Path::new(&program.file);
    let broken = |message: String| Failed { code: 1, message };
    let binary = wat::Parser::new()
        .parse_bytes(Some(path), &program.source)
        .map_err(|error| broken(format!("{}: not a module\n{error}", program.file)))?;
    let engine = Engine::default();
    let module = Module::new(&engine, &binary)
        .map_err(|error| broken(format!("{}: not a module: {error}", program.file)))?;
    let mut store = Store::new(&engine, World::new(program));
    let mut linker = Linker::new(&engine);
    wasi::define(&mut linker).map_err(|error| ours(error.to_string()))?;
    let instance = match linker.instantiate_and_start(&mut store, &module) {
        Ok(instance) => instance,
        Err(error) => return ended(program, &error),
    };
    if let Ok(start) = instance.get_typed_func::<(), ()>(&store, "_start") {
        return match start.call(&mut store, ()) {
            Ok(()) => Ok(0),
            Err(error) => ended(program, &error),
        };
    }
    // In the order they were written, which the instance does not keep.
    let exports = module.exports().filter_map(|export| {
        let function = instance.get_func(&store, export.name())?;
        Some((export.name().to_owned(), function))
    });
    let exports: Vec<_> = exports.collect();
    let mut code = 0;
    for (name, function) in exports {
        let kind = function.ty(&store);
        if !kind.params().is_empty() {
            continue;
        }
        let mut results: Vec<Val> = kind
            .results()
            .iter()
            .map(|kind| Val::default_for_ty(*kind))
            .collect();
        let line = match function.call(&mut store, &[], &mut results) {
            Ok(()) => results.iter().map(shown).collect::<Vec<_>>().join(", "),
            Err(error) if error.i32_exit_status().is_some() => return ended(program, &error),
            Err(error) => {
                code = 1;
                let _ = writeln!(io::stderr(), "{}: trap: {error}", program.file);
                format!("error: {error}")
            }
        };
        let line = format!("{name}() => {line}");
        let printed = writeln!(io::stdout(), "{}", line.trim_end());
        printed.map_err(|error| ours(error.to_string()))?;
    }
    Ok(code)
}

fn ended(program: &Program, error: &Error) -> Result<u8, Failed> {
    match error.i32_exit_status() {
        Some(code) => Ok(code as u8),
        None => Err(Failed {
            code: 1,
            message: format!("{}: trap: {error}", program.file),
        }),
    }
}

/// A value as `wasm-interp` prints it: integers without a sign.
fn shown(value: &Val) -> String {
    match value {
        Val::I32(value) => format!("i32:{}", *value as u32),
        Val::I64(value) => format!("i64:{}", *value as u64),
        Val::F32(value) => format!("f32:{:.6}", value.to_float()),
        Val::F64(value) => format!("f64:{:.6}", value.to_float()),
        other => format!("{:?}", other.ty()).to_lowercase(),
    }
}
