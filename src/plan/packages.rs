//! A program with its packages installed: what that adds to its launch, and to its build if it has one.

use std::collections::BTreeMap;
use std::path::Path;

use jail::Tree;

use super::environment::base_environment;
use super::session::OWN;
use super::{Build, PackageInputs, RunPlan, build, runtime_trees};
use crate::cell::{Ahead, Launch};
use crate::language::{Definition, Packages, Runtime};
use crate::packages::{IN_CELL, PackagePlan, Set, leading_imports};
use crate::request::{CellPath, Ecosystem, FileSource, InputFile, IsolationChoice};

impl PackageInputs {
    /// How the packages are installed, if there are any: those of the program's own language, and those of others.
    /// `trees` is what the program's runtime needs of the host.
    pub(super) fn plan(
        self,
        definition: &Definition,
        runtime: &Runtime,
        trees: Vec<Tree>,
        isolation: Option<IsolationChoice>,
    ) -> (Option<Box<PackagePlan>>, Vec<PackagePlan>) {
        let offline = self.offline;
        let plan = |of: &Definition, with: &Runtime, trees, wishes| {
            Some(PackagePlan {
                language: of.id.clone(),
                runtime: with.clone(),
                trees,
                wishes,
                how: of.packages.clone()?,
                env: base_environment(with),
                offline,
                isolation,
            })
        };
        let own = self.wishes;
        let own = own.and_then(|wishes| plan(definition, runtime, trees, wishes));
        let lent = self.lent.into_iter().filter_map(|it| {
            let trees = runtime_trees(&it.runtime);
            plan(&it.definition, &it.runtime, trees, it.wishes)
        });
        (own.map(Box::new), lent.collect())
    }
}

/// Where the packages that a session has of another language are, in its workspace: a link that later calls change.
fn lent_in_session(from: Ecosystem) -> Option<CellPath> {
    CellPath::parse(&format!("{OWN}packages-{}", from.name())).ok()
}

impl RunPlan {
    /// The launch and the build of this program with a set of packages.
    pub fn with_packages(&self, packages: &PackagePlan, set: &Set) -> (Launch, Option<Build>) {
        let how = &packages.how;
        let tree = format!("{IN_CELL}/{}", set.tree);
        let file = self.source.as_str();
        let module = self.build.as_ref().map_or("", |it| &it.module_flags);
        let fill = |text: &str| {
            text.replace("{packages}", &tree)
                .replace("{file}", file)
                .replace("{module}", module)
        };
        let variables = how.env.iter();
        let variables: BTreeMap<String, String> = variables
            .map(|(name, value)| (name.clone(), fill(value)))
            .collect();
        let link = |(path, to): (&_, &String)| InputFile {
            path: Clone::clone(path),
            source: FileSource::Link(fill(to).into()),
            mode: 0o777,
        };
        let links = how.links.iter().map(|(path, to)| link((path, to)));

        let mut launch = self.launch.clone();
        let Some(mut build) = self.build.clone() else {
            // A program that brings its own has its own.
            let is_free = |link: &InputFile| {
                let mut own = self.launch.files.iter();
                !own.any(|file| file.is_in_the_way_of(link))
            };
            let links: Vec<InputFile> = links.filter(is_free).collect();
            if let Some(prestart) = &mut launch.prestart {
                // One that looks closely at its runtime is not to see what was done when.
                if !prestart.zygote.leave.is_empty() {
                    prestart.ahead = self.ahead(how, set, &prestart.prelude, fill);
                }
                if !how.prelude.is_empty() {
                    prestart.prelude = format!("{}\n{}", fill(&how.prelude), prestart.prelude);
                }
            }
            add_variables(&mut launch.env, variables);
            return (launch.files(links), None);
        };
        if !how.compile.is_empty() {
            let tool = how.installers.iter().find(|it| it.beside);
            let tool = tool.map_or("", |it| &it.tool);
            let tool = Path::new(&self.runtime.program).with_file_name(tool);
            let (tool, out) = (tool.to_string_lossy(), build::out());
            let word = |word: &String| fill(word).replace("{tool}", &tool).replace("{out}", &out);
            let steps = how.compile.iter();
            build.steps = steps.map(|it| it.iter().map(word).collect()).collect();
        }
        build.extend(&self.launch.limits, how.timeout, how.memory);
        add_variables(&mut build.more_env, variables);
        // A compiler has ours, whatever the program brings.
        let own = InputFile::from_bytes(self.source.clone(), []);
        build.more_files = links.filter(|link| !own.is_in_the_way_of(link)).collect();
        (launch, Some(build))
    }
}

impl RunPlan {
    /// Adds the commands of another language's packages. Those of a session are found through a link.
    pub fn lend(&self, launch: &mut Launch, packages: &PackagePlan, set: &Set) {
        let link = self.lent_link(packages, set);
        let folder = match &link {
            Some(link) => format!("/workspace/{}", link.path),
            None => format!("{IN_CELL}/{}", set.tree),
        };
        let fill = |(name, value): (&String, &String)| {
            (name.clone(), value.replace("{packages}", &folder))
        };
        add_variables(
            &mut launch.env,
            packages.how.lends.iter().map(fill).collect(),
        );
        launch.files.extend(link);
    }

    /// What leads a session to the packages of another language.
    pub fn lent_link(&self, packages: &PackagePlan, set: &Set) -> Option<InputFile> {
        let path = lent_in_session(packages.how.from).filter(|_| self.session.is_some())?;
        let to = format!("{IN_CELL}/{}", set.tree);
        Some(InputFile {
            path,
            source: FileSource::Link(to.into()),
            mode: 0o777,
        })
    }

    /// The imports that this program begins with. One that has files beside it may mean those.
    fn ahead(
        &self,
        how: &Packages,
        set: &Set,
        rest: &str,
        fill: impl Fn(&str) -> String,
    ) -> Option<Ahead> {
        let is_ours = |file: &InputFile| file.path.as_str().starts_with(".home/");
        let is_alone = self.launch.files.iter().skip(1).all(is_ours);
        if how.ahead.is_empty() || self.session.is_some() || !is_alone {
            return None;
        }
        let imports = leading_imports(how.from, std::str::from_utf8(self.code()).ok()?);
        let code = format!("{}\n{}", fill(&how.prelude), fill(&how.ahead));
        (!imports.is_empty()).then(|| Ahead {
            packages: set.tree.clone(),
            code: code.replace("{imports}", &imports.join("\n")),
            imports,
            rest: rest.to_owned(),
        })
    }
}

/// What the caller set stays, behind ours.
fn add_variables(env: &mut BTreeMap<String, String>, variables: BTreeMap<String, String>) {
    for (name, value) in variables {
        let entry = env.entry(name);
        entry
            .and_modify(|own| *own = format!("{value}:{own}"))
            .or_insert(value);
    }
}
