//! JavaScript and TypeScript read and, where QuickJS or node would not understand them,
//! rewritten: types, enums, namespaces and JSX.

use std::ops::Range;
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Expression, Program, Statement};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, SourceType, Span};
use oxc_transformer::{JsxRuntime, TransformOptions, Transformer};

/// A program as a plain JavaScript engine can take it.
pub struct Script {
    pub code: String,
    /// Whether it imports or exports, or awaits outside of functions.
    pub is_module: bool,
    pub places: Places,
    /// The same for other readers: a source map as an address that holds it.
    pub map: Option<String>,
}

/// Where the parts of rewritten code come from. Empty for code that is as it was written.
#[derive(Default)]
pub struct Places(Vec<Place>);

/// A place in the code, then in the source; both count from 0.
struct Place {
    code: (u32, u32),
    source: (u32, u32),
}

/// Source that is no program of its language.
pub struct Broken {
    pub offset: usize,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    JavaScript,
    TypeScript,
}

impl Script {
    /// Code that is taken as it was written.
    pub fn plain(code: String, is_module: bool) -> Self {
        Self {
            code,
            is_module,
            places: Places::default(),
            map: None,
        }
    }
}

impl Dialect {
    /// By a file's ending; anything unknown is JavaScript.
    pub fn of(path: &Path) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            Some("ts" | "tsx" | "mts" | "cts") => Self::TypeScript,
            _ => Self::JavaScript,
        }
    }
}

/// Reads a program; `path` is for its ending, and for messages.
pub fn read(path: &Path, source: &str, dialect: Dialect) -> Result<Script, Broken> {
    // A cast `<T>x` and an element `<T>` look alike, so JSX is what does not parse without it.
    let plain = SourceType::unambiguous().with_typescript(dialect == Dialect::TypeScript);
    let ending = path.extension().and_then(|ending| ending.to_str());
    let plain = match ending {
        Some("mjs" | "mts") => plain.with_module(true),
        _ => plain,
    };
    let allocator = Allocator::default();
    let first = parse(&allocator, source, plain);
    if !first.diagnostics.has_errors() {
        if dialect == Dialect::JavaScript {
            let is_module = first.program.source_type.is_module();
            return Ok(Script::plain(source.to_owned(), is_module));
        }
        return rewrite(&allocator, path, first);
    }
    let with_jsx = parse(&allocator, source, plain.with_jsx(true));
    if with_jsx.diagnostics.has_errors() {
        return Err(broken(first.diagnostics.into_iter().next()));
    }
    rewrite(&allocator, path, with_jsx)
}

/// Where a program names what it imports, each with its quotes.
pub fn imports(source: &str, dialect: Dialect) -> Vec<Range<usize>> {
    let kind = SourceType::unambiguous().with_typescript(dialect == Dialect::TypeScript);
    let allocator = Allocator::default();
    let first = parse(&allocator, source, kind);
    let record = match first.diagnostics.has_errors() {
        true => parse(&allocator, source, kind.with_jsx(true)).module_record,
        false => first.module_record,
    };
    let named = record
        .requested_modules
        .values()
        .flatten()
        .map(|it| it.span);
    let called = record.dynamic_imports.iter().map(|it| it.module_request);
    let spans = named.chain(called);
    let mut places: Vec<Range<usize>> = spans
        .map(|span| span.start as usize..span.end as usize)
        .collect();
    places.sort_by_key(|place| place.start);
    places
}

/// A program whose last expression is given to `$$v`, if it ends with one.
///
/// Mostly ours stands behind it, and the places of errors are the program's own; else one in that very line is reported five columns late.
pub fn with_value(source: &str, dialect: Dialect) -> Option<String> {
    let kind = SourceType::unambiguous().with_typescript(dialect == Dialect::TypeScript);
    let allocator = Allocator::default();
    let first = parse(&allocator, source, kind);
    let (last, is_tight) = match first.diagnostics.has_errors() {
        true => {
            let with_jsx = parse(&allocator, source, kind.with_jsx(true));
            last_expression(&with_jsx.program).filter(|_| !with_jsx.diagnostics.has_errors())
        }
        false => last_expression(&first.program),
    }?;
    let (start, end) = (last.start as usize, last.end as usize);
    let (before, rest) = source.split_at_checked(start)?;
    let (expression, after) = rest.split_at_checked(end.checked_sub(start)?)?;
    Some(match is_tight {
        true => format!("{before}{expression}\ninstanceof $$v{after}"),
        false => format!("{before}$$v=({expression}){after}"),
    })
}

/// Where the last expression is, and whether nothing in it binds less than `instanceof`.
fn last_expression(program: &Program<'_>) -> Option<(Span, bool)> {
    let last = match program.body.last() {
        Some(Statement::ExpressionStatement(last)) => &last.expression,
        Some(_) => return None,
        // A text alone is a directive.
        None => {
            return program
                .directives
                .last()
                .map(|it| (it.expression.span, true));
        }
    };
    let is_tight = match last {
        Expression::BinaryExpression(it) => it.operator.is_arithmetic(),
        Expression::ArrowFunctionExpression(_)
        | Expression::AssignmentExpression(_)
        | Expression::ConditionalExpression(_)
        | Expression::LogicalExpression(_)
        | Expression::SequenceExpression(_)
        | Expression::YieldExpression(_)
        | Expression::TSAsExpression(_)
        | Expression::TSSatisfiesExpression(_) => false,
        _ => true,
    };
    Some((last.span(), is_tight))
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str, kind: SourceType) -> ParserReturn<'a> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    Parser::new(allocator, source, kind)
        .with_options(options)
        .parse()
}

fn rewrite<'a>(
    allocator: &'a Allocator,
    path: &Path,
    parsed: ParserReturn<'a>,
) -> Result<Script, Broken> {
    let mut program = parsed.program;
    let is_module = program.source_type.is_module();
    let semantic = SemanticBuilder::new()
        .with_excess_capacity(2.0)
        .with_enum_eval(true)
        .build(&program);
    let mut options = TransformOptions::default();
    // Nothing is imported that the program does not name.
    options.jsx.runtime = JsxRuntime::Classic;
    let scoping = semantic.semantic.into_scoping();
    let transformed =
        Transformer::new(allocator, path, &options).build_with_scoping(scoping, &mut program);
    if transformed.diagnostics.has_errors() {
        return Err(broken(transformed.diagnostics.into_iter().next()));
    }
    let printed = Codegen::new()
        .with_options(CodegenOptions {
            source_map_path: Some(path.to_owned()),
            ..CodegenOptions::default()
        })
        .build(&program);
    let places = printed.map.iter().flat_map(|map| map.get_tokens());
    let places = places.map(|token| Place {
        code: (token.get_dst_line(), token.get_dst_col()),
        source: (token.get_src_line(), token.get_src_col()),
    });
    Ok(Script {
        map: printed.map.as_ref().map(|map| map.to_data_url()),
        places: Places(places.collect()),
        code: printed.code,
        is_module,
    })
}

fn broken(
    diagnostic: Option<impl std::ops::Deref<Target = oxc_diagnostics::OxcDiagnosticInner>>,
) -> Broken {
    let Some(diagnostic) = diagnostic else {
        return Broken {
            offset: 0,
            message: "Invalid syntax".to_owned(),
        };
    };
    Broken {
        offset: diagnostic
            .labels
            .first()
            .map_or(0, |label| label.offset() as usize),
        message: diagnostic.message.to_string(),
    }
}

impl Places {
    /// The source's line and column, counted from 1, for those of the code.
    pub fn find(&self, line: u32, column: u32) -> (u32, u32) {
        let wanted = (line.saturating_sub(1), column.saturating_sub(1));
        let after = self.0.partition_point(|place| place.code <= wanted);
        // The nearest before it on its line; else the first on its line.
        let candidates = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let found = candidates
            .filter_map(|at| self.0.get(at))
            .find(|place| place.code.0 == wanted.0);
        found.map_or((line, column), |place| {
            (place.source.0 + 1, place.source.1 + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_expression_of_a_program_is_given_away_and_nothing_else_is_touched() {
        for (source, expected) in [
            ("1 + 1", "1 + 1\ninstanceof $$v"),
            (
                "let x: number = 4; x ?? 2 // two\n",
                "let x: number = 4; $$v=(x ?? 2) // two\n",
            ),
            ("f()\n;(a)\n", "f()\n;(a)\ninstanceof $$v\n"),
            (
                "import a from 'a'\nawait a<string>(\n  1,\n);\n",
                "import a from 'a'\nawait a<string>(\n  1,\n)\ninstanceof $$v;\n",
            ),
            ("// c\n'text'", "// c\n'text'\ninstanceof $$v"),
            ("'use strict'\n'é' == b", "'use strict'\n$$v=('é' == b)"),
            ("a.b = 3", "$$v=(a.b = 3)"),
            ("<b>{x}</b>", "<b>{x}</b>\ninstanceof $$v"),
        ] {
            let written = with_value(source, Dialect::TypeScript);
            assert_eq!(written.as_deref(), Some(expected));
        }
        for source in [
            "",
            "// 1",
            "let x = 1",
            "1; interface A {}",
            "if (x) y",
            "export default 1",
            "1 +",
            "for (;;) {}\n1 1",
        ] {
            assert_eq!(with_value(source, Dialect::TypeScript), None, "{source}");
        }
    }
}
