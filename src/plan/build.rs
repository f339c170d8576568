//! What must be built before a program can start, and within which limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jail::{Limits, Tree};

use super::placeholders::Names;
use crate::language::{Compile, Definition};
use crate::request::{CellPath, InputFile};

/// Where compilers put what they make, below the workspace.
pub const BUILD_FOLDER: &str = ".build";
/// The name of the program in it.
pub const OUT: &str = "main";

/// The compile step of a plan.
#[derive(Debug, Clone)]
pub struct Build {
    /// One after the other, each in a cell of its own.
    pub steps: Vec<Vec<String>>,
    pub env: BTreeMap<String, String>,
    /// The program's own, the source first.
    pub files: Vec<InputFile>,
    /// What the tools need of the host.
    pub trees: Vec<Tree>,
    pub limits: Limits,
    /// For each step.
    pub timeout: Duration,
    /// The programs that do it: with others the result may be another.
    pub tools: Vec<PathBuf>,
    pub compile: Compile,
    pub warm_up: Option<WarmUp>,
    /// What builds the module `hotcell`, before the steps.
    pub module_steps: Vec<Vec<String>>,
    /// What tells a compiler of it that the program's packages bring.
    pub module_flags: String,
    /// What the program's packages add: to the environment, and to the files beside it.
    pub more_env: BTreeMap<String, String>,
    pub more_files: Vec<InputFile>,
}

/// How the tool chain's own cache is filled, once.
#[derive(Debug, Clone)]
pub struct WarmUp {
    /// The folder in the workspace.
    pub cache: CellPath,
    /// A program whose build fills it, and the file it is in.
    pub program: String,
    pub file: CellPath,
    pub steps: Vec<Vec<String>>,
}

/// The program that is built.
pub struct Of<'a> {
    /// Its environment, without what its caller added.
    pub env: &'a BTreeMap<String, String>,
    pub files: &'a [InputFile],
    pub trees: &'a [Tree],
    pub limits: &'a Limits,
}

pub fn plan(definition: &Definition, names: &Names<'_>, program: Of<'_>) -> Option<Build> {
    let way = &names.runtime.way;
    if way.compile.is_empty() {
        return None;
    }
    let compile = &definition.compile;
    let steps = |names: &Names<'_>| way.compile.iter().map(|step| names.expand(step)).collect();
    let memory = u64::from(compile.memory) << 20;
    let timeout = Duration::from_secs(compile.timeout.into());
    let tools = names.runtime.tools.iter().map(|tool| tool.path.clone());
    let warm_up = compile.cache.clone().map(|cache| WarmUp {
        cache,
        program: compile.warm_up.clone(),
        file: definition.source.file.clone(),
        steps: steps(&Names {
            file: definition.source.file.as_str(),
            name: &definition.source.nameless,
            args: &[],
            sources: Vec::new(),
            ..*names
        }),
    });
    Some(Build {
        steps: steps(names),
        env: program
            .env
            .clone()
            .into_iter()
            .chain(compile.env.clone())
            .collect(),
        files: program.files.to_vec(),
        trees: program.trees.to_vec(),
        limits: limits(program.limits, memory, timeout),
        timeout,
        tools: [names.runtime.path.clone()]
            .into_iter()
            .chain(tools)
            .collect(),
        compile: compile.clone(),
        warm_up,
        module_steps: Vec::new(),
        module_flags: String::new(),
        more_env: BTreeMap::new(),
        more_files: Vec::new(),
    })
}

impl Build {
    /// All of its steps, one after the other.
    pub fn all_steps(&self) -> impl Iterator<Item = &Vec<String>> {
        self.module_steps.iter().chain(&self.steps)
    }

    /// Has it last this long and take so many MiB, if that is more than it may already.
    pub fn extend(&mut self, run: &Limits, seconds: u32, memory: u32) {
        let seconds = seconds.max(self.compile.timeout);
        let memory = memory.max(self.compile.memory);
        self.timeout = Duration::from_secs(seconds.into());
        self.limits = limits(run, u64::from(memory) << 20, self.timeout);
    }
}

fn limits(run: &Limits, memory: u64, timeout: Duration) -> Limits {
    Limits {
        memory,
        cpus: run.cpus.max(2.0),
        cpu_seconds: 2 * timeout.as_secs() + 1,
        tasks: run.tasks.max(256),
        workspace: memory / 4 * 3,
        workspace_inodes: run.workspace_inodes,
        tmp: memory / 2,
        ..run.clone()
    }
}

/// The program to be built, as its cell sees it.
pub fn out() -> String {
    format!("/workspace/{BUILD_FOLDER}/{OUT}")
}

/// The request's files that are built along with the program.
pub fn sources(definition: &Definition, files: &[InputFile]) -> Vec<String> {
    let also = &definition.compile.also;
    let built = |file: &&InputFile| {
        let path = Path::new(file.path.as_str());
        let is_here = path.parent() == Some(Path::new(""));
        let extension = path.extension();
        (is_here || !definition.compile.also_here)
            && extension.is_some_and(|it| also.iter().any(|also| it == also.as_str()))
    };
    files
        .iter()
        .filter(built)
        .map(|file| super::file_argument(&file.path))
        .collect()
}
