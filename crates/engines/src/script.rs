//! JavaScript and TypeScript read and, where QuickJS or node would not understand them,
//! rewritten: types, enums, namespaces and JSX.

use std::borrow::Cow;
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
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
            return Ok(Script {
                code: source.to_owned(),
                is_module: first.program.source_type.is_module(),
                places: Places::default(),
                map: None,
            });
        }
        return rewrite(&allocator, path, first);
    }
    let with_jsx = parse(&allocator, source, plain.with_jsx(true));
    if with_jsx.diagnostics.has_errors() {
        return Err(broken(first.diagnostics.into_iter().next()));
    }
    rewrite(&allocator, path, with_jsx)
}

/// The source with `npm:name@1/part` imported as `name/part`, which other runtimes than deno find
/// too. Everything else stays in its place.
pub fn with_bare_names(source: &str) -> Cow<'_, str> {
    if !source.contains("npm:") {
        return Cow::Borrowed(source);
    }
    let allocator = Allocator::default();
    let kind = SourceType::unambiguous().with_typescript(true);
    let mut parsed = parse(&allocator, source, kind);
    if parsed.diagnostics.has_errors() {
        parsed = parse(&allocator, source, kind.with_jsx(true));
    }
    let record = &parsed.module_record;
    let named = record.requested_modules.values().flatten();
    let asked = record.dynamic_imports.iter().map(|it| it.module_request);
    let spans = named.map(|it| it.span).chain(asked);
    let mut text = source.to_owned();
    for span in spans {
        let range = span.start as usize..span.end as usize;
        let word = &source[range.clone()];
        if let Some(mut bare) = bare_name(word) {
            bare.extend(std::iter::repeat_n(' ', word.len() - bare.len()));
            text.replace_range(range, &bare);
        }
    }
    Cow::Owned(text)
}

/// `"name/part"` for the literal `"npm:name@1/part"`.
fn bare_name(literal: &str) -> Option<String> {
    let quote = literal.chars().next().filter(|it| "\"'`".contains(*it))?;
    let name = literal.strip_prefix(quote)?.strip_suffix(quote)?;
    let name = name.strip_prefix("npm:")?.trim_start_matches('/');
    let scope = match name.starts_with('@') {
        true => name.find('/')? + 1,
        false => 0,
    };
    let package = name[scope..].find('/').map_or(name.len(), |at| scope + at);
    let version = name[scope..package]
        .find('@')
        .map_or(package, |at| scope + at);
    Some(format!(
        "{quote}{}{}{quote}",
        &name[..version],
        &name[package..]
    ))
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
    fn packages_are_named_as_others_name_them_and_nothing_moves() {
        let source = "import z from \"npm:zod@3\"; await import('npm:@s/a@^1.2/b');\nexport * from 'npm:x'; console.log('npm:y', \"é\")";
        let bare = with_bare_names(source);
        assert_eq!(bare.len(), source.len());
        let words: Vec<&str> = bare.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "import z from \"zod\" ; await import('@s/a/b' ); export * from 'x' ; console.log('npm:y', \"é\")"
        );
        assert_eq!(bare.lines().count(), source.lines().count());
        for same in ["console.log('npm:y')", "import 'npm:", "import x from 'y'"] {
            assert_eq!(with_bare_names(same), same);
        }
    }
}
