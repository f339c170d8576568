//! jq, by jaq: a filter over the JSON values on standard input.
//!
//! `-n`, `-r`, `-c` and `-s` may come first among the arguments; the rest is
//! `$ARGS.positional`.

use std::io::{self, Write};

use jaq_core::data::HasLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::native::run as native;
use jaq_core::{Compiler, Ctx, DataT, Exn, Filter, Lut, Vars, compile};
use jaq_json::write::Pp;
use jaq_json::{Val, read};
use jaq_std::input::{self, HasInputs, Inputs, RcIter};

use super::{Failed, Program, line_at};

/// jq's exit codes for a filter that is none, and for an error while it runs.
const NO_FILTER: u8 = 3;
const ERROR: u8 = 5;

/// What a filter can reach while it runs.
struct Kind;

struct Data<'a> {
    lut: &'a Lut<Kind>,
    inputs: Inputs<'a, Val>,
}

impl DataT for Kind {
    type V<'a> = Val;
    type Data<'a> = &'a Data<'a>;
}

impl<'a> HasLut<'a, Kind> for &'a Data<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}

impl<'a> HasInputs<'a, Val> for &'a Data<'a> {
    fn inputs(&self) -> Inputs<'a, Val> {
        self.inputs
    }
}

#[derive(Default)]
struct Flags {
    null_input: bool,
    raw: bool,
    compact: bool,
    slurp: bool,
}

pub fn run(program: &Program) -> Result<u8, Failed> {
    let (flags, args) = flags(&program.args);
    let filter = read_filter(program)?;
    // Read when it is asked for: a filter may not want any.
    let values = read::read_many(io::stdin().lock());
    let values = values.map(|value| value.map_err(|error| error.to_string()));
    let inputs: Box<dyn Iterator<Item = Result<Val, String>>> = if flags.slurp {
        let all = values.collect::<Result<Vec<_>, _>>().map(Val::from_iter);
        Box::new(std::iter::once(all))
    } else {
        Box::new(values)
    };
    let inputs = RcIter::new(inputs);
    let data = Data {
        lut: &filter.lut,
        inputs: &inputs,
    };
    let positional: Val = args.iter().map(|arg| Val::utf8_str(arg.clone())).collect();
    let named = Val::obj(Default::default());
    let both = [("positional", positional), ("named", named)];
    let both = both.map(|(name, value)| (Val::utf8_str(name.to_owned()), value));
    let ctx = Ctx::<Kind>::new(&data, Vars::new([Val::obj(both.into_iter().collect())]));
    let start = flags.null_input.then(|| Ok(Val::Null));
    let each = start
        .into_iter()
        .chain((!flags.null_input).then_some(&inputs).into_iter().flatten());
    let mut out = io::BufWriter::new(io::stdout().lock());
    for value in each {
        let value = value.map_err(|error| error_text(&format!("(at <stdin>): {error}")))?;
        for result in filter.id.run((ctx.clone(), value)) {
            match result {
                Ok(value) => print(&mut out, &value, &flags),
                Err(exception) => {
                    let _ = out.flush();
                    return ended(exception);
                }
            }
            .map_err(|error| error_text(&error.to_string()))?;
        }
        out.flush()
            .map_err(|error| error_text(&error.to_string()))?;
    }
    Ok(0)
}

/// A filter that stopped: by `halt`, or by an error that nothing caught.
fn ended(exception: Exn<'_, Val>) -> Result<u8, Failed> {
    match exception.get_err() {
        Ok(error) => {
            let said = match error.into_val() {
                Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
                other => format!("{other} (not a string)"),
            };
            Err(error_text(&format!("(at <stdin>): {said}")))
        }
        Err(other) => match other.get_halt() {
            Ok(code) => Ok(code as u8),
            Err(_) => Err(error_text("break")),
        },
    }
}

fn flags(args: &[String]) -> (Flags, &[String]) {
    let mut flags = Flags::default();
    let mut rest = args;
    while let [first, after @ ..] = rest {
        match first.as_str() {
            "-n" => flags.null_input = true,
            "-r" => flags.raw = true,
            "-c" => flags.compact = true,
            "-s" => flags.slurp = true,
            _ => break,
        }
        rest = after;
    }
    (flags, rest)
}

fn print(out: &mut impl Write, value: &Val, flags: &Flags) -> io::Result<()> {
    match value {
        Val::TStr(text) if flags.raw => out.write_all(text)?,
        _ => {
            let pp = Pp {
                indent: (!flags.compact).then(|| "  ".to_owned()),
                sort_keys: false,
                styles: Default::default(),
                sep_space: !flags.compact,
            };
            jaq_json::write::write(out, &pp, 0, value)?;
        }
    }
    out.write_all(b"\n")
}

fn read_filter(program: &Program) -> Result<Filter<Kind>, Failed> {
    let code = program.text()?;
    let broken = |at: usize, message: String| Failed {
        code: NO_FILTER,
        message: format!(
            "{}:{}: {message}",
            program.file,
            line_at(code.as_bytes(), at)
        ),
    };
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let inputs = input::funs::<Kind>()
        .into_vec()
        .into_iter()
        .map(native::<Kind>);
    let funs = jaq_core::funs::<Kind>()
        .chain(jaq_std::funs::<Kind>())
        .chain(jaq_json::funs::<Kind>())
        .chain(inputs);
    let (arena, loader) = (Arena::default(), Loader::new(defs));
    let modules = loader
        .load(&arena, File { code, path: () })
        .map_err(|errors| {
            let (at, message) = errors
                .into_iter()
                .find_map(|(_, error)| loading(code, error))
                .unwrap_or_default();
            broken(at, message)
        })?;
    let compiler = Compiler::default()
        .with_funs(funs)
        .with_global_vars(["$ARGS"]);
    compiler.compile(modules).map_err(|errors| {
        let first = errors
            .into_iter()
            .find_map(|(_, errors)| errors.into_iter().next());
        let (found, undefined): compile::Error<&str> =
            first.unwrap_or(("", compile::Undefined::Mod));
        broken(
            load::span(code, found).start,
            format!("undefined {}: {found}", undefined.as_str()),
        )
    })
}

/// Where a filter is not one, and what was wanted there.
fn loading(code: &str, error: load::Error<&str>) -> Option<(usize, String)> {
    match error {
        load::Error::Io(errors) => errors
            .first()
            .map(|(path, error)| (load::span(code, path).start, error.clone())),
        load::Error::Lex(errors) => errors.first().map(|(wanted, found)| {
            (
                load::span(code, found).start,
                format!("expected {}", wanted.as_str()),
            )
        }),
        load::Error::Parse(errors) => errors.first().map(|(wanted, found)| {
            (
                load::span(code, found).start,
                format!("expected {}", wanted.as_str()),
            )
        }),
    }
}

fn error_text(message: &str) -> Failed {
    Failed {
        code: ERROR,
        message: format!("jq: error {message}"),
    }
}
