//! From a request to everything a run needs, resolved: what `run --plan` prints.
//!
//! Pure: the same request and inputs give the same plan, whole, out of one function. Nothing here looks at the host.

mod binding;
mod build;
mod display;
mod limits;
mod network;
mod packages;
mod prestart;
mod session;
mod show;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jail::{Limits, Mount, Tree};

use crate::cell::{Launch, WantedChanges};
use crate::egress::Egress;
use crate::language::{By, Definition, Failure, LanguageId, Runtime, Session, Wants};
use crate::packages::{PackagePlan, Wishes};
use crate::request::{CellPath, InputFile, RequestError, RunRequest, Showing, overlap, unmarked};

pub use build::{BUILD_FOLDER, Build, WarmUp};
pub use limits::{Defaults, Most};
use prestart::Program;
use words::Names;

/// One program, ready to be started in a cell.
#[derive(Debug, Clone)]
pub struct RunPlan {
    pub language: LanguageId,
    /// What told the language, and how sure that is.
    pub chosen: (By, f64),
    pub runtime: Runtime,
    /// The program's file, the first of the launch.
    pub source: CellPath,
    /// What its cell is started with, as far as that is known before the packages are installed and the program is built.
    pub launch: Launch,
    /// What must be built before it can start.
    pub build: Option<Build>,
    /// The packages that it needs.
    pub packages: Option<Box<PackagePlan>>,
    /// The hosts it may reach, if any.
    pub egress: Option<Egress>,
    /// The upstream servers whose tools it may call.
    pub servers: Vec<String>,
    /// How this program would say why it failed.
    pub failure: Failure,
    /// The most that its caller could have asked for.
    pub most: Most,
    /// How it runs as a call of a session, if it is one.
    pub session: Option<Session>,
    /// Whether its value is wanted as the language's own prompt writes it.
    pub at_prompt: bool,
    /// What the caller should know: limits that were not given as asked, for instance.
    pub notes: Vec<String>,
}

/// What a request is resolved with: all that was found, read and decided before.
pub struct Inputs<'a> {
    pub definition: &'a Definition,
    pub chosen: (By, f64),
    pub runtime: &'a Runtime,
    pub defaults: &'a Defaults,
    pub packages: PackageInputs,
    pub egress: Option<Egress>,
    pub upstream: UpstreamInputs,
    pub notes: Vec<String>,
}

#[derive(Default)]
pub struct PackageInputs {
    /// The tree with all installed packages, if the cell is to see it.
    pub tree: Option<Tree>,
    pub wishes: Option<Wishes>,
    pub offline: bool,
}

#[derive(Default)]
pub struct UpstreamInputs {
    /// The servers whose tools the program may call.
    pub names: Vec<String>,
    /// Whether programs can call any at all on this host.
    pub has_any: bool,
}

/// In the workspace.
const HOME: &str = ".home";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Plans a run. The only things that can still be wrong are a file of the request
/// that has the name the program itself gets, and a mount where its runtime is.
pub fn plan(request: RunRequest, inputs: Inputs<'_>) -> Result<RunPlan, RequestError> {
    let Inputs {
        definition,
        runtime,
        defaults,
        packages,
        upstream,
        mut notes,
        ..
    } = inputs;
    let settled = defaults.settle(request.asked_limits());
    let name = own_name(&request, definition);
    let usual = runtime.way.file.as_ref().unwrap_or(&definition.source.file);
    let path = source_path(&request, definition, usual, &name);
    let session = request.session().and(definition.session.clone());
    let parts = request.into_parts();
    let source = InputFile::from_bytes(path.clone(), source_text(definition, &parts.code));
    let is_in_the_way = |file: &&InputFile| file.is_in_the_way_of(&source);
    if let Some(file) = parts.files.iter().find(is_in_the_way) {
        return Err(RequestError::SamePath(file.path.clone()));
    }
    let trees = runtime_trees(runtime);
    check_mounts(&parts.mounts, &trees)?;
    let file = file_argument(&path);
    let names = Names {
        runtime,
        file: &file,
        name: &name,
        args: &parts.args,
        sources: build::sources(definition, &parts.files),
    };
    let argv = runtime
        .engine_command(&file, &parts.args)
        .unwrap_or_else(|| names.expand(&runtime.way.run));
    let env = environment(definition, runtime);
    let packages_shown = packages.tree.is_some();
    let shown: Vec<Tree> = trees.iter().cloned().chain(packages.tree).collect();
    let files: Vec<InputFile> = [source].into_iter().chain(parts.files).collect();
    let build = build::plan(
        definition,
        &names,
        build::Of {
            env: &env,
            files: &files,
            trees: &shown,
            limits: &settled.limits,
        },
    );
    let how = definition.packages.as_ref();
    let root_links = how.filter(|_| packages_shown).into_iter();
    let root_links = root_links.flat_map(|how| how.root_links());
    let mut launch = Launch::new(argv)
        .env([threads(&settled.limits)])
        .env(env)
        .env(parts.env.clone())
        .trees(shown)
        .mounts(parts.mounts)
        .links(root_links)
        .limits(settled.limits)
        .timeout(settled.timeout)
        .output_limit(settled.output)
        .changes(WantedChanges {
            contents: parts.wants_files,
            except: not_its_own(),
            known: HashMap::new(),
        });

    let binding = definition.binding.as_ref();
    let binding = binding.filter(|_| !upstream.names.is_empty());
    let showing = match session {
        None => parts.showing,
        // Its worker is started as it is, and shows what its calls do.
        Some(_) => Showing::Nothing,
    };
    let shows = display::wants(definition, &parts.code, showing);
    launch.prestart = Program {
        definition,
        runtime,
        code: &parts.code,
        is_given_words: !parts.args.is_empty() || !parts.env.is_empty(),
        files: &files,
        is_built: build.is_some(),
        has_network: inputs.egress.is_some(),
        has_packages: packages.wishes.is_some(),
        binding,
        display: shows.map(|(display, _)| display),
    }
    .prestart(&launch, defaults, upstream.has_any);

    launch = launch.files(files);
    if inputs.egress.is_some() {
        launch = network::grant(launch);
    }
    let servers = match (binding, upstream.names) {
        (Some(binding), names) => {
            launch = binding::bind(launch, binding, runtime, &file, &names);
            names
        }
        (None, names) if !names.is_empty() => {
            let language = &definition.name;
            notes.push(format!(
                "programs in {language} cannot call the tools of servers"
            ));
            Vec::new()
        }
        _ => Vec::new(),
    };
    if let Some(shows) = shows {
        launch = display::equip(launch, shows, runtime, &file);
    }
    if let Some(display) = definition.display.as_ref()
        && session.as_ref().is_some_and(|session| session.shows)
    {
        launch = display::lay_out(launch, display, Wants::default());
    }
    let packages = packages.wishes.zip(how).map(|(wishes, how)| PackagePlan {
        language: definition.id.clone(),
        runtime: runtime.clone(),
        trees,
        wishes,
        how: how.clone(),
        env: base_environment(runtime),
        offline: packages.offline,
    });
    Ok(RunPlan {
        language: definition.id.clone(),
        chosen: inputs.chosen,
        runtime: runtime.clone(),
        source: path,
        launch,
        build,
        packages: packages.map(Box::new),
        egress: inputs.egress,
        servers,
        failure: match session {
            Some(_) => definition.failure.clone(),
            None => definition.failure.for_file(&file),
        },
        session,
        at_prompt: parts.showing == Showing::Prompt,
        most: defaults.most(),
        notes: settled.notes.into_iter().chain(notes).collect(),
    })
}

/// What a runtime, a compiler or the embedded translator leaves in the workspace, and not the program.
fn not_its_own() -> Vec<CellPath> {
    let names = [HOME, BUILD_FOLDER, ".main.cjs", ".main.mjs"];
    let path = |name| CellPath::parse(name).expect("a plain path");
    names.into_iter().map(path).collect()
}

/// What the runtime and its tools need of the host.
fn runtime_trees(runtime: &Runtime) -> Vec<Tree> {
    let tools = runtime.tools.iter().map(|tool| &tool.prefix);
    let prefixes = [&runtime.prefix].into_iter().chain(tools).flatten();
    prefixes.chain(&runtime.shown).cloned().collect()
}

fn check_mounts(mounts: &[Mount], trees: &[Tree]) -> Result<(), RequestError> {
    for mount in mounts {
        if trees.iter().any(|tree| overlap(&tree.cell, &mount.cell)) {
            return Err(RequestError::BadMount {
                what: mount.cell.display().to_string(),
                reason: "the runtime is there",
            });
        }
    }
    Ok(())
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
fn source_text(definition: &Definition, code: &[u8]) -> Vec<u8> {
    match &definition.source.prepend {
        Some(prepend) if !prepend.unless.is_in(&String::from_utf8_lossy(code)) => {
            [prepend.text.as_bytes(), unmarked(code)].concat()
        }
        _ => code.to_vec(),
    }
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

/// How many threads a library shall compute with. Most make one for each processor that they see, and a cell sees more than its quota
/// lets it use: on a large machine they would meet the limit of processes, and complain of that.
fn threads(limits: &Limits) -> (String, String) {
    let count = limits.cpus.max(1.0).ceil();
    ("OMP_NUM_THREADS".to_owned(), count.to_string())
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
        ("HOME".to_owned(), format!("/workspace/{HOME}")),
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
