//! From a request to everything a run needs, resolved: what `run --plan` prints.
//!
//! Pure: the same request and inputs give the same plan, whole, out of one function. Nothing here looks at the host.

mod additions;
mod binding;
mod build;
mod display;
mod environment;
mod limits;
mod module;
mod network;
mod packages;
mod placeholders;
mod preparation;
mod prestart;
mod session;
mod show;
mod source;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use jail::{Mount, Tree};

use crate::cell::{Gathering, Launch, WantedChanges};
use crate::egress::Egress;
use crate::language::{By, Definition, Failure, LanguageId, Runtime, Session};
use crate::packages::{PackagePlan, Wishes};
use crate::request::{
    CellPath, Ecosystem, InputFile, IsolationChoice, RequestError, RunRequest, Showing, overlap,
};
use crate::upstream::ServerName;

use additions::{Additions, is_mcp_module};
pub use build::{BUILD_FOLDER, Build, WarmUp};
use environment::{environment, threads};
pub use limits::{Defaults, Most};
use placeholders::Names;
pub use preparation::Preparation;
use prestart::Program;
use source::{file_argument, own_name, source_path, source_text};

/// One program, ready to be started in a cell.
#[derive(Debug, Clone)]
pub struct RunPlan {
    pub language: LanguageId,
    /// What told the language, and how sure that is.
    pub chosen: (By, f64),
    pub runtime: Arc<Runtime>,
    /// The program's file, the first of the launch.
    pub source: CellPath,
    /// What its cell is started with, as far as that is known before the packages are installed and the program is built.
    pub launch: Launch,
    /// What an engine of ours does so that it can start in a pre-started sandbox.
    pub preparation: Option<Box<Preparation>>,
    /// What must be built before it can start.
    pub build: Option<Build>,
    /// Whose packages its language has, if any.
    pub packages_from: Option<Ecosystem>,
    /// The packages that it needs.
    pub packages: Option<Box<PackagePlan>>,
    /// Those of other languages, for their commands.
    pub lent: Vec<PackagePlan>,
    /// Who builds the walls of its sandbox, if not who usually does.
    pub isolation: Option<IsolationChoice>,
    /// The hosts it may reach, if any.
    pub egress: Option<Egress>,
    /// The upstream servers whose tools it may call.
    pub servers: Vec<String>,
    /// How programs of its language say why they failed, and what that calls its file.
    failure: Arc<Failure>,
    file: String,
    /// The most that its caller could have asked for.
    pub most: Most,
    /// How it runs as a call of a session, if it is one.
    pub session: Option<Arc<Session>>,
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
    /// The runtime's, if it is known already.
    pub version: Option<String>,
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
    pub lent: Vec<Lent>,
    pub offline: bool,
}

/// Packages of another language, for their commands.
pub struct Lent {
    pub definition: Definition,
    /// That their commands need.
    pub runtime: Runtime,
    pub wishes: Wishes,
}

#[derive(Default)]
pub struct UpstreamInputs {
    /// The servers whose tools the program may call.
    pub names: Vec<ServerName>,
    /// Whether programs can call any at all on this host.
    pub has_any: bool,
    /// The names of all of them.
    pub configured: Vec<String>,
}

/// In the workspace.
const HOME: &str = ".home";

/// Plans a run. The only things that can still be wrong are a file of the request
/// that has the name the program itself gets, and a mount where its runtime is.
pub fn plan(request: RunRequest, inputs: Inputs<'_>) -> Result<RunPlan, RequestError> {
    let Inputs {
        definition,
        runtime,
        defaults,
        packages,
        upstream,
        notes,
        ..
    } = inputs;
    let settled = defaults.settle(request.asked_limits());
    let name = own_name(&request, definition);
    let usual = runtime.way.file.as_ref().unwrap_or(&definition.source.file);
    let path = source_path(&request, definition, usual, &name);
    let session = request.session().and(definition.session.clone());
    let isolation = request.asked_isolation();
    let parts = request.into_parts();
    let source = InputFile::from_bytes(path.clone(), source_text(definition, &parts.code));
    let is_in_the_way = |file: &&InputFile| file.is_in_the_way_of(&source);
    if let Some(file) = parts.files.iter().find(is_in_the_way) {
        return Err(RequestError::SamePath(file.path.clone()));
    }
    let trees = runtime_trees(runtime);
    let lent = packages.lent.iter();
    let lent: Vec<Tree> = lent.flat_map(|it| runtime_trees(&it.runtime)).collect();
    check_mounts(&parts.mounts, trees.iter().chain(&lent))?;
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
    let prestarted = match runtime.way.prestart.as_slice() {
        [] => argv.clone(),
        words => names.expand(words),
    };
    let mut env = environment(definition, runtime);
    for runtime in packages.lent.iter().map(|it| &it.runtime) {
        // Their commands start it.
        if runtime.prefix.is_some()
            && let Some(folder) = Path::new(&runtime.program).parent()
        {
            let path = env.entry("PATH".to_owned()).or_default();
            *path = format!("{}:{path}", folder.display());
        }
    }
    let packages_shown = packages.tree.is_some();
    let shown = trees
        .iter()
        .chain(lent.iter().filter(|it| !trees.contains(it)));
    let shown: Vec<Tree> = shown.cloned().chain(packages.tree.clone()).collect();
    let files = [source].into_iter().chain(parts.call.begin);
    let files: Vec<InputFile> = files.chain(parts.files).collect();
    let wishes = packages.wishes.as_ref();
    let has_own_mcp = wishes.is_some_and(|it| it.names("mcp")) || files.iter().any(is_mcp_module);
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
    let build = build.map(|it| module::add_to_build(it, definition, &names));
    let how = definition.packages.as_ref();
    let root_links = how.filter(|_| packages_shown).into_iter();
    let root_links = root_links.flat_map(|how| how.root_links());
    let launch = Launch::new(argv)
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
            except: not_its_own(definition, &files),
            known: HashMap::new(),
        });

    let showing = match session {
        None => parts.showing,
        // Its worker is started as it is, and shows what its calls do.
        Some(_) => Showing::Nothing,
    };
    let additions = Additions {
        definition,
        runtime,
        program: &file,
        version: inputs.version.as_deref(),
        code: &parts.code,
        upstream: &upstream,
        has_network: inputs.egress.is_some(),
        has_own_mcp,
        session: session.as_ref(),
        shows: display::wants(definition, &parts.code, showing),
    };
    let started = &parts.call.started;
    let launch = match session.is_some() && started.iter().any(|it| it == definition.id.as_str()) {
        // It has all of that.
        true => launch.files(files),
        false => {
            let mut launch = additions.before_start(launch);
            launch.prestart = Program {
                additions: &additions,
                is_given_words: !parts.args.is_empty() || !parts.env.is_empty(),
                argv: prestarted,
                files: &files,
                is_built: build.is_some(),
                has_packages: packages.wishes.is_some(),
                sees_other_runtime: !packages.lent.is_empty(),
            }
            .prestart(&launch, defaults);
            let gathering = gathering(&additions);
            Launch {
                gathering,
                ..additions.add(launch.files(files))
            }
        }
    };
    let mut launch = launch;
    let preparation = Preparation::take(definition, runtime, &mut launch);
    let (mut packages, lent) = packages.plan(definition, runtime, trees, isolation);
    if let Some(own) = packages.as_mut().filter(|_| !additions.can_run_preludes()) {
        own.how.ahead.clear();
    }
    let (source, file) = match &session {
        Some(session) => session::call_file(session, &path, parts.call.number),
        None => (path, file),
    };
    Ok(RunPlan {
        language: definition.id.clone(),
        chosen: inputs.chosen,
        runtime: Arc::new(runtime.clone()),
        source,
        launch,
        preparation: preparation.map(Box::new),
        build,
        packages_from: definition.packages.as_ref().map(|how| how.from),
        packages,
        lent,
        isolation,
        egress: inputs.egress,
        servers: upstream.names.into_iter().map(|it| it.alias).collect(),
        failure: Arc::new(definition.failure.clone()),
        file,
        session: session.map(Arc::new),
        at_prompt: parts.showing == Showing::Prompt,
        most: defaults.most(),
        notes: settled.notes.into_iter().chain(notes).collect(),
    })
}

impl RunPlan {
    /// How this program would say why it failed.
    pub fn failure(&self) -> Failure {
        self.failure.for_file(&self.file)
    }
}

/// How a new runtime has what the program prints gathered.
fn gathering(additions: &Additions<'_>) -> Option<Gathering> {
    let Additions {
        definition, code, ..
    } = *additions;
    let unbuffered = additions.runtime.way.unbuffered.clone();
    // The end of a zip file, which CPython runs without opening it as a program. And what a session prints belongs to its calls.
    let is_archive = code.windows(4).any(|it| it == b"PK\x05\x06");
    let instead_of = unbuffered.filter(|_| additions.session.is_none() && !is_archive)?;
    let warm = definition.warm.as_ref()?;
    let is_exact = warm.is_exact(&String::from_utf8_lossy(code));
    let scripts = definition.display.iter().flat_map(|it| &it.scripts);
    let starter = scripts.map(|it| format!("{}/{}", binding::FOLDER, it.name));
    Some(Gathering {
        instead_of,
        script: additions.program.to_owned(),
        starter: starter.into_iter().next().unwrap_or_default(),
        leave: if is_exact { "" } else { &warm.leave }.into(),
    })
}

/// What a runtime, a compiler or the embedded translator leaves in the workspace, and not the program.
fn not_its_own(definition: &Definition, files: &[InputFile]) -> Vec<CellPath> {
    let names = [HOME, BUILD_FOLDER, ".main.cjs", ".main.mjs"].map(str::to_owned);
    let translated = files.iter().filter(|it| definition.owns(it.path.as_str()));
    let translated = translated.flat_map(|file| {
        let path = file.path.as_str();
        let at = path.rfind('/').map_or(0, |at| at + 1);
        let (folder, name) = path.split_at(at);
        ["cjs", "mjs"].map(|ending| format!("{folder}.{name}.{ending}"))
    });
    let names = names.into_iter().chain(translated);
    names.filter_map(|it| CellPath::parse(&it).ok()).collect()
}

/// What the runtime and its tools need of the host.
fn runtime_trees(runtime: &Runtime) -> Vec<Tree> {
    let tools = runtime.tools.iter().map(|tool| &tool.prefix);
    let prefixes = [&runtime.prefix].into_iter().chain(tools).flatten();
    prefixes.chain(&runtime.shown).cloned().collect()
}

fn check_mounts<'a>(
    mounts: &[Mount],
    trees: impl Iterator<Item = &'a Tree> + Clone,
) -> Result<(), RequestError> {
    for mount in mounts {
        if trees.clone().any(|tree| overlap(&tree.cell, &mount.cell)) {
            return Err(RequestError::BadMount {
                what: mount.cell.display().to_string(),
                reason: "the runtime is there",
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
