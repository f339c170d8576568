//! From a request to everything a run needs, resolved: what `run --plan` prints.
//!
//! Pure: the same request, definition, runtime and defaults give the same plan.
//! Nothing here looks at the host.

mod build;
mod egress;
mod limits;
mod secret;
mod servers;
mod show;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jail::{Limits, Link, Mount, Tree, Zygote};

use crate::language::{By, Definition, Failure, LanguageId, Runtime};
use crate::packages::{PackagePlan, Set, Wishes};
use crate::request::{
    CellPath, FileSource, InputFile, RequestError, RunRequest, overlap, unmarked,
};

pub use build::{BUILD_FOLDER, Build, WarmUp};
pub use egress::{Egress, PORT};
pub use limits::{Defaults, Range};
pub use secret::{Header, Hidden, Secret};
pub(crate) use show::bytes;
use words::Names;

/// One program, ready to be started in a cell.
#[derive(Debug, Clone)]
pub struct RunPlan {
    pub language: LanguageId,
    /// What told the language, and how sure that is.
    pub chosen: (By, f64),
    pub runtime: Runtime,
    /// What the cell sees of the host beyond `/usr`.
    pub trees: Vec<Tree>,
    /// Folders of the host that were granted.
    pub mounts: Vec<Mount>,
    /// Links at the root of the cell.
    pub links: Vec<Link>,
    /// The hosts it may reach, if any: see [`RunPlan::grant`].
    pub egress: Option<Egress>,
    /// The first is an absolute path inside the cell, or the word for the engines.
    pub argv: Vec<String>,
    /// The whole environment of the program.
    pub env: BTreeMap<String, String>,
    pub source: Source,
    /// Placed beside the source; none has its path.
    pub files: Vec<InputFile>,
    pub limits: Limits,
    pub timeout: Duration,
    /// Bytes of output after which the run is ended.
    pub output_limit: u64,
    /// What must be built before it can start.
    pub build: Option<Build>,
    /// Folders of the workspace whose files are wanted when it has ended well.
    pub collect: Vec<CellPath>,
    /// A folder of the workspace that is copied to a folder of the host when it has ended well.
    pub export: Option<(CellPath, PathBuf)>,
    /// The packages that it needs.
    pub packages: Option<Box<PackagePlan>>,
    /// The servers whose tools it may call: see [`RunPlan::bind`].
    pub servers: Vec<String>,
    /// What a waiting runtime runs before the program.
    pub wake: String,
    /// How this program would say why it failed.
    pub failure: Failure,
    /// The waiting runtime that this run could go on with, if it asks for nothing special.
    pub zygote: Option<Zygote>,
    /// How many MiB such a runtime takes up while it waits, if it shares nothing.
    pub weight: u32,
    /// What the caller should know: limits that were not given as asked.
    pub notes: Vec<String>,
}

/// The program's file in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub path: CellPath,
    pub bytes: Vec<u8>,
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Plans a run. The only thing that can still be wrong is a file of the request
/// that has the name the program itself gets.
pub fn plan(
    request: RunRequest,
    definition: &Definition,
    runtime: &Runtime,
    defaults: &Defaults,
) -> Result<RunPlan, RequestError> {
    let settled = defaults.settle(request.asked_limits());
    let name = own_name(&request, definition);
    let usual = runtime.way.file.as_ref().unwrap_or(&definition.source.file);
    let path = source_path(&request, definition, usual, &name);
    let parts = request.into_parts();
    let source = InputFile::from_bytes(path.clone(), []);
    if let Some(file) = parts
        .files
        .iter()
        .find(|file| file.is_in_the_way_of(&source))
    {
        return Err(RequestError::SamePath(file.path.clone()));
    }
    let file = file_argument(&path);
    let names = Names {
        runtime,
        file: &file,
        name: &name,
        args: &parts.args,
        sources: build::sources(definition, &parts.files),
    };
    let env = environment(definition, runtime);
    let trees = runtime.tools.iter().map(|tool| &tool.prefix);
    let argv = runtime
        .engine_command(&file, &parts.args)
        .unwrap_or_else(|| names.expand(&runtime.way.run));
    let build = build::plan(definition, &names, &env, &settled.limits);
    // A runtime may have looked there before it waited.
    let in_home = |file: &InputFile| file.path.as_str().starts_with(".home");
    let plain = runtime.way.embedded.is_none()
        && parts.args.is_empty()
        && !parts.files.iter().any(in_home)
        && parts.env.is_empty()
        && build.is_none()
        && !runtime.way.cold
        && path == definition.source.file;
    let env: BTreeMap<String, String> = env.into_iter().chain(parts.env).collect();
    let zygote = (plain && settled.limits.fit_into(&defaults.usual_limits()))
        .then(|| zygote(definition, &argv, &env, &parts.code, parts.files.is_empty()))
        .flatten();
    let trees: Vec<Tree> = [&runtime.prefix]
        .into_iter()
        .chain(trees)
        .flatten()
        .chain(&runtime.shown)
        .cloned()
        .collect();
    for mount in &parts.mounts {
        if trees.iter().any(|tree| overlap(&tree.cell, &mount.cell)) {
            return Err(RequestError::BadMount {
                what: mount.cell.display().to_string(),
                reason: "the runtime is there",
            });
        }
    }
    Ok(RunPlan {
        language: definition.id.clone(),
        chosen: (By::Request, 1.0),
        runtime: runtime.clone(),
        trees,
        mounts: parts.mounts,
        links: Vec::new(),
        egress: None,
        argv,
        build,
        collect: Vec::new(),
        export: None,
        packages: None,
        servers: Vec::new(),
        wake: String::new(),
        env,
        zygote,
        weight: definition.warm.as_ref().map_or(0, |warm| warm.weight),
        source: Source {
            path,
            bytes: source_text(definition, parts.code),
        },
        files: parts.files,
        limits: settled.limits,
        timeout: settled.timeout,
        output_limit: settled.output,
        failure: definition.failure.for_file(&file),
        notes: settled.notes,
    })
}

impl RunPlan {
    /// The same program with packages to install first.
    pub fn want(&mut self, wishes: Wishes, definition: &Definition, offline: bool) {
        let Some(how) = &definition.packages else {
            return;
        };
        // What a waiting runtime has loaded may be one of them in another version.
        if self.zygote.is_some() {
            let (argv, env, code) = (&self.argv, &self.env, &self.source.bytes);
            self.zygote = zygote(definition, argv, env, code, false);
        }
        if how.wake.is_empty() {
            self.zygote = None;
        }
        self.packages = Some(Box::new(PackagePlan {
            wishes,
            how: how.clone(),
            env: base_environment(&self.runtime),
            offline,
        }));
    }

    /// The same program with its packages installed.
    pub fn with_packages(&self, set: &Set) -> Self {
        let mut plan = self.clone();
        let Some(packages) = plan.packages.take() else {
            return plan;
        };
        let tree = format!("{}/{}", crate::packages::IN_CELL, set.tree);
        let file = self.source.path.as_str();
        let fill = |text: &String| text.replace("{packages}", &tree).replace("{file}", file);
        if let Some(build) = plan
            .build
            .as_mut()
            .filter(|_| !packages.how.compile.is_empty())
        {
            let tool = packages.how.installers.iter().find(|it| it.beside);
            let tool = tool.map_or("", |it| &it.tool);
            let tool = Path::new(&self.runtime.program).with_file_name(tool);
            let (tool, out) = (tool.to_string_lossy(), build::out());
            let word = |word: &String| fill(word).replace("{tool}", &tool).replace("{out}", &out);
            let steps = packages.how.compile.iter();
            build.steps = steps.map(|it| it.iter().map(word).collect()).collect();
        }
        let (env, files) = match &mut plan.build {
            Some(build) => {
                build.extend(&self.limits, packages.how.timeout, packages.how.memory);
                (&mut build.more_env, &mut build.more_files)
            }
            None => (&mut plan.env, &mut plan.files),
        };
        for (name, value) in &packages.how.env {
            let value = fill(value);
            // What the caller set stays, behind ours.
            let entry = env.entry(name.clone());
            entry
                .and_modify(|own| *own = format!("{value}:{own}"))
                .or_insert(value);
        }
        plan.wake = format!("{}\n{}", fill(&packages.how.wake), self.wake);
        for (path, to) in &packages.how.links {
            let link = InputFile {
                path: path.clone(),
                source: FileSource::Link(fill(to).into()),
                mode: 0o777,
            };
            // A program that brings its own has its own; a compiler has ours.
            let own = InputFile::from_bytes(self.source.path.clone(), []);
            let beside = self.files.iter().filter(|_| self.build.is_none());
            if !beside
                .chain([&own])
                .any(|file| file.is_in_the_way_of(&link))
            {
                files.push(link);
            }
        }
        plan
    }
}

/// What the program calls itself, as far as that is needed.
fn own_name(request: &RunRequest, definition: &Definition) -> String {
    let source = &definition.source;
    let text = match source.name.as_slice() {
        [] => return source.nameless.clone(),
        _ => String::from_utf8_lossy(request.code()),
    };
    let named = source.name.iter().find_map(|rule| rule.first(&text));
    named.unwrap_or(&source.nameless).to_owned()
}

/// The program with what its runtime must find at its beginning.
fn source_text(definition: &Definition, code: Vec<u8>) -> Vec<u8> {
    match &definition.source.prepend {
        Some(prepend) if !prepend.unless.is_in(&String::from_utf8_lossy(&code)) => {
            [prepend.text.as_bytes(), unmarked(&code)].concat()
        }
        _ => code,
    }
}

/// The runtime that waits for programs like this one.
fn zygote(
    definition: &Definition,
    argv: &[String],
    env: &BTreeMap<String, String>,
    code: &[u8],
    is_alone: bool,
) -> Option<Zygote> {
    let warm = definition.warm.as_ref()?;
    let code = String::from_utf8_lossy(code);
    let [before, after, leave] = warm.code(&code, is_alone)?;
    let variable = |(name, value): (&String, &String)| format!("{name}={value}").into();
    Some(Zygote {
        fresh: warm.fresh,
        has_input: false,
        first: warm.first(&code).to_owned(),
        argv: argv.iter().map(Into::into).collect(),
        env: env.iter().map(variable).collect(),
        script: definition.source.file.as_str().into(),
        warm: before,
        fork: after,
        leave,
    })
}

/// A program that came as a file of this language keeps its name, so that its
/// messages speak of the file the caller knows.
fn source_path(
    request: &RunRequest,
    definition: &Definition,
    usual: &CellPath,
    name: &str,
) -> CellPath {
    let source = &definition.source;
    let kept = request.file_name();
    if let Some(kept) = kept.filter(|it| source.keep_name && definition.owns(it.as_str())) {
        return kept.clone();
    }
    let name = if source.lower_case {
        name.to_lowercase()
    } else {
        name.to_owned()
    };
    // A name that makes no path is the program's fault, and its runtime will say so.
    CellPath::parse(&usual.as_str().replace("{name}", &name)).unwrap_or_else(|_| usual.clone())
}

/// The file as the runtime is told of it: as one would type it in the workspace.
fn file_argument(path: &CellPath) -> String {
    // `-c.py` must not be read as an option.
    if path.as_str().starts_with('-') {
        format!("./{path}")
    } else {
        path.to_string()
    }
}

/// Ours, then the language's; the later wins, and the request's wins over both.
fn environment(definition: &Definition, runtime: &Runtime) -> BTreeMap<String, String> {
    let mut env = base_environment(runtime);
    env.extend(definition.env.clone());
    env.extend(runtime.way.env.clone());
    env
}

/// What any program has, and what the runtime itself needs.
fn base_environment(runtime: &Runtime) -> BTreeMap<String, String> {
    let tools = runtime.tools.iter().map(|it| (&it.prefix, &it.program));
    // What is not under /usr is found by its name too.
    let own = [(&runtime.prefix, &runtime.program)]
        .into_iter()
        .chain(tools);
    let folders = own
        .filter(|(prefix, _)| prefix.is_some())
        .filter_map(|(_, program)| Path::new(program).parent()?.to_str());
    let path: Vec<&str> = folders.chain([PATH]).collect();
    let mut env = BTreeMap::from([
        ("HOME".to_owned(), "/workspace/.home".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("PATH".to_owned(), path.join(":")),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
    ]);
    if !runtime.libraries.is_empty() {
        env.insert("LD_LIBRARY_PATH".to_owned(), runtime.libraries.join(":"));
    }
    env.extend(runtime.env.clone());
    env
}

#[cfg(test)]
mod tests;
