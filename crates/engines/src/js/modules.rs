//! Where `import` and `require` find things: the engine's own modules, files of the
//! workspace, and packages that were installed for it. There is no network here.

use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Exception, Function, Module, Object, Promise, Result, Value};

use super::packages::Asked;
use super::{CONTROL, Files, Unreadable};

pub struct Modules(pub Rc<Files>);

/// The modules that node has.
const OF_NODE: &str = include_str!("../../../../packages/node-own.txt");

/// The engine's own code, by name.
const LIBRARIES: &[(&str, &str)] = &[
    ("assert", include_str!("lib/assert.js")),
    ("boot", include_str!("lib/boot.js")),
    ("clone", include_str!("lib/clone.js")),
    ("encoding", include_str!("lib/encoding.js")),
    ("events", include_str!("lib/events.js")),
    ("fetch", include_str!("lib/fetch.js")),
    ("inspect", include_str!("lib/inspect.js")),
    ("node", include_str!("lib/node.js")),
    ("path", include_str!("lib/path.js")),
    ("readline", include_str!("lib/readline.js")),
    ("url", include_str!("lib/url.js")),
    (
        "hotcell",
        concat!(
            "(exports) => {\n",
            include_str!("../../../../languages/module/index.cjs"),
            "}"
        ),
    ),
    (
        "vars",
        include_str!("../../../../languages/session/vars.js"),
    ),
];

/// The function that a file of `lib` is.
pub fn library<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
    let Some((_, source)) = LIBRARIES.iter().find(|(known, _)| *known == name) else {
        return Err(Exception::throw_reference(ctx, name));
    };
    let mut options = EvalOptions::default();
    options.filename = Some(format!("hotcell:{name}"));
    ctx.eval_with_options(*source, options)
}

impl Files {
    /// The file that `name` means in a file `from`.
    pub fn resolve(&self, from: &Path, name: &str, asked: Asked) -> Option<PathBuf> {
        let name = name.strip_prefix("file://").unwrap_or(name);
        match name.starts_with(['.', '/']) {
            true => self.file(&from.parent()?.join(name), asked),
            false => self.of_package(from, name, asked),
        }
    }

    /// A file as it is named, or the one that stands for its folder.
    pub fn file(&self, path: &Path, asked: Asked) -> Option<PathBuf> {
        let path = tidy(path);
        named_file(&path)
            .or_else(|| self.entry(&path, asked))
            .or_else(|| index(&path))
    }
}

const ENDINGS: [&str; 6] = ["js", "ts", "mjs", "cjs", "tsx", "json"];

/// A file as it is, or with an ending that was left out.
pub fn named_file(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let mut candidates = vec![path.to_owned()];
    candidates.extend(ENDINGS.map(|ending| format!("{text}.{ending}").into()));
    // TypeScript names the file that it would become.
    let becomes = [
        (".js", ".ts"),
        (".mjs", ".mts"),
        (".jsx", ".tsx"),
        (".js", ".tsx"),
    ];
    let became = becomes
        .iter()
        .filter_map(|(to, from)| Some(format!("{}{from}", text.strip_suffix(to)?).into()));
    candidates.extend(became);
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// The file that a folder has for itself.
pub fn index(folder: &Path) -> Option<PathBuf> {
    let candidates = ENDINGS.map(|ending| folder.join(format!("index.{ending}")));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

pub fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            part => tidy.push(part),
        }
    }
    tidy
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if builtin(ctx, name)?.is_some() {
            return Ok(format!("node:{}", name.trim_start_matches("node:")));
        }
        if let Some(path) = self.0.resolve(Path::new(base), name, Asked::Import) {
            return Ok(path.to_string_lossy().into_owned());
        }
        let (code, message, place) = if is_of_node(name) {
            let name = name.trim_start_matches("node:");
            let message = format!("No such built-in module: node:{name}");
            (
                "ERR_UNKNOWN_BUILTIN_MODULE",
                message,
                format!("\n    at {base}"),
            )
        } else {
            let kind = match name.starts_with(['.', '/']) {
                true => "module",
                false => "package",
            };
            let message = format!("Cannot find {kind} '{name}' imported from {base}");
            ("ERR_MODULE_NOT_FOUND", message, String::new())
        };
        let error = Exception::from_message(ctx.clone(), &message)?;
        // node names the code in the first line; the stack was made before there was one.
        error.as_object().set("code", code)?;
        error
            .as_object()
            .set("stack", format!("Error [{code}]: {message}{place}"))?;
        Err(error.throw())
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let path = Path::new(name);
        let source = if name.starts_with("node:") {
            let names =
                builtin(ctx, name)?.map(|module| module.keys().collect::<Result<Vec<String>>>());
            exports(
                &format!("builtin({name:?})"),
                names.transpose()?.unwrap_or_default(),
            )
        } else {
            let unreadable = |why| match why {
                Unreadable::File(error) => {
                    Exception::throw_message(ctx, &format!("Cannot read '{name}': {error}"))
                }
                Unreadable::Broken(broken) => {
                    Exception::throw_syntax(ctx, &format!("{} ({name})", broken.message))
                }
            };
            if path.extension().is_some_and(|ending| ending == "json") {
                let text = std::fs::read_to_string(path).map_err(Unreadable::File);
                let text = serde_json::Value::from(text.map_err(unreadable)?);
                format!("export default JSON.parse({text});")
            } else {
                let script = self.0.read(path).map_err(unreadable)?;
                if script.is_module {
                    self.0.remember(name, script.places, 0);
                    script.code
                } else {
                    // What it exports is known when it has run: it does so before the
                    // modules that import it, and not in their order.
                    let names = match load(ctx, name)?.as_object() {
                        Some(exported) => exported.keys().collect::<Result<Vec<String>>>()?,
                        None => Vec::new(),
                    };
                    exports(&format!("library('node').load({name:?})"), names)
                }
            }
        };
        declare(ctx, name, source)
    }
}

/// Starts the main program as a module; what its end is promised by.
pub fn start<'js>(ctx: &Ctx<'js>, files: &Files, name: &str) -> Result<Promise<'js>> {
    let script = files.read(Path::new(name));
    // It was read before; only its file could be gone.
    let script = script.map_err(|_| Exception::throw_message(ctx, "it cannot be read"))?;
    files.remember(name, script.places, 0);
    Ok(declare(ctx, name, script.code)?.eval()?.1)
}

fn declare<'js>(ctx: &Ctx<'js>, name: &str, source: String) -> Result<Module<'js, Declared>> {
    let module = Module::declare(ctx.clone(), name, source)?;
    let meta: Object = module.meta()?;
    meta.set("url", format!("file://{name}"))?;
    Ok(module)
}

fn builtin<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Option<Object<'js>>> {
    let control: Object = ctx.globals().get(CONTROL)?;
    let find: Function = control.get("builtin")?;
    find.call((name,))
}

/// What a script exports, or a module that is required.
fn load<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    let control: Object = ctx.globals().get(CONTROL)?;
    let library: Function = control.get("library")?;
    let node: Object = library.call(("node",))?;
    node.get::<_, Function>("load")?.call((name,))
}

/// Whether node has a module of this name.
pub fn is_of_node(name: &str) -> bool {
    name.starts_with("node:") || OF_NODE.lines().any(|own| own == name)
}

/// A module that is the value of an expression, and exports its fields.
fn exports(expression: &str, names: Vec<String>) -> String {
    let is_word = |name: &String| {
        let mut bytes = name.bytes();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
        name != "default" && !name.starts_with(|it: char| it.is_ascii_digit()) && bytes.all(plain)
    };
    let fields: String = names
        .iter()
        .filter(|name| !name.is_empty() && is_word(name))
        .enumerate()
        .map(|(at, name)| format!("const $_{at} = it.{name}; export {{ $_{at} as {name} }};\n"))
        .collect();
    format!("const it = globalThis.{CONTROL}.{expression};\nexport default it;\n{fields}")
}
