//! Lua 5.4, as the program `lua` would run it: the same libraries but for `debug` and
//! modules in C, the same `arg`, the same messages.

use mlua::{Error, Lua, Value, Variadic};

use super::{Failed, Program};

pub fn run(program: &Program) -> Result<u8, Failed> {
    let lua = Lua::new();
    prepare(&lua, program).map_err(|error| failed(&error))?;
    let chunk = lua.load(without_shebang(&program.source));
    let arguments = Variadic::from_iter(program.args.iter().cloned());
    chunk
        .set_name(format!("@{}", program.file))
        .call::<()>(arguments)
        .map_err(|error| failed(&error))?;
    Ok(0)
}

fn prepare(lua: &Lua, program: &Program) -> mlua::Result<()> {
    let globals = lua.globals();
    let arg = lua.create_sequence_from(program.args.iter().cloned())?;
    arg.raw_set(0, program.file.as_str())?;
    globals.set("arg", arg)?;
    // The library itself can break Lua's own promises, so only its harmless part is here.
    let debug = lua.create_table()?;
    let traceback =
        lua.create_function(
            |lua, (message, level): (Value, Option<usize>)| match message {
                Value::Nil => lua.traceback(None, level.unwrap_or(1)).map(Value::String),
                Value::String(text) => lua
                    .traceback(Some(&text.to_string_lossy()), level.unwrap_or(1))
                    .map(Value::String),
                other => Ok(other),
            },
        )?;
    debug.set("traceback", traceback)?;
    globals.set("debug", debug)?;
    // What was printed before a kill must have left the interpreter.
    lua.load("io.stdout:setvbuf('line')").exec()
}

/// Lua's own loader of files skips a first line that starts with `#`; lines keep their numbers.
fn without_shebang(source: &[u8]) -> &[u8] {
    if source.first() != Some(&b'#') {
        return source;
    }
    let end = source.iter().position(|byte| *byte == b'\n');
    &source[end.unwrap_or(source.len())..]
}

fn failed(error: &Error) -> Failed {
    let message = match error {
        Error::SyntaxError { message, .. } | Error::RuntimeError(message) => message.clone(),
        Error::MemoryError(_) => "not enough memory".to_owned(),
        other => other.to_string(),
    };
    Failed {
        code: 1,
        message: format!("lua: {}", message.trim_end()),
    }
}
