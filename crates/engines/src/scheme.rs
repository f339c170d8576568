//! Scheme by Steel, a dialect near R7RS: `(command-line)` and `(exit CODE)` are as there.

use std::path::PathBuf;

use steel::SteelVal;
use steel::steel_vm::engine::Engine;
use steel::steel_vm::register_fn::RegisterFn;

use super::{Failed, Program};

/// The exit code of CHICKEN for an error that nothing caught.
const ERROR: u8 = 70;

pub fn run(program: &Program) -> Result<u8, Failed> {
    let source = program.text()?.to_owned();
    let mut engine = Engine::new();
    let args: Vec<String> = [&program.file]
        .into_iter()
        .chain(&program.args)
        .cloned()
        .collect();
    engine.register_fn("command-line", move || args.clone());
    engine.register_fn("exit", |code: SteelVal| -> SteelVal {
        std::process::exit(match code {
            SteelVal::IntV(code) => code as i32,
            SteelVal::BoolV(false) => 1,
            _ => 0,
        })
    });
    let path = PathBuf::from(&program.file);
    match engine.compile_and_run_raw_program_with_path(source, path) {
        Ok(_) => Ok(0),
        Err(error) => {
            let message = engine.raise_error_to_string(error).unwrap_or_default();
            Err(Failed {
                code: ERROR,
                message: message.trim_end().to_owned(),
            })
        }
    }
}
