//! Whether a program can go on in a pre-started runtime, and in which.

use jail::Zygote;

use super::additions::Additions;
use super::binding::Bound;
use super::{BUILD_FOLDER, Defaults};
use crate::cell::{Launch, Prestart};
use crate::language::{Display, Rule, Warm};
use crate::request::{FileSource, InputFile};

/// What a program is, as far as that decides.
pub struct Program<'a> {
    pub additions: &'a Additions<'a>,
    /// Whether it has arguments, or variables of its own.
    pub is_given_words: bool,
    /// The command line that it would be started by.
    pub argv: Vec<String>,
    /// The source first.
    pub files: &'a [InputFile],
    pub is_built: bool,
    pub has_packages: bool,
    /// Whether it sees the runtime of another language, which no pre-started one does.
    pub sees_other_runtime: bool,
}

impl Additions<'_> {
    /// Whether the runtime can run code of ours before the program.
    pub fn can_run_preludes(&self) -> bool {
        let knows = |rule: &Rule| self.version.is_some_and(|version| rule.is_in(version));
        let is_able = |warm: &Warm| warm.preludes.as_ref().is_none_or(knows);
        !self.runtime.way.without_prelude && self.warm().is_some_and(is_able)
    }

    /// How runtimes of its kind wait, if they do.
    fn warm(&self) -> Option<&Warm> {
        let own = self.runtime.way.warm.as_deref();
        own.or(self.definition.warm.as_ref())
    }
}

impl Program<'_> {
    /// The pre-started runtime that `launch` could go on with, if it asks for nothing special.
    pub fn prestart(&self, launch: &Launch, defaults: &Defaults) -> Option<Prestart> {
        let Additions {
            definition,
            runtime,
            upstream,
            ..
        } = self.additions;
        let warm = self.additions.warm()?;
        let limits = defaults.prestarted_limits();
        let prepared = runtime.way.prepared.first();
        // The engine that prepares a program is given its files one by one, and leaves its own in a folder.
        let is_given = |file: &InputFile| {
            let is_folder = matches!(file.source, FileSource::HostFolder(_));
            !is_folder && !file.path.as_str().starts_with(BUILD_FOLDER)
        };
        let is_whole = self.files.iter().all(is_given) && launch.view.mounts.is_empty();
        if prepared.is_some() && (!is_whole || self.additions.session.is_some()) {
            return None;
        }
        if !self.is_plain() || !launch.limits.fit_into(&limits) {
            return None;
        }
        let mut code = String::from_utf8_lossy(self.additions.code).into_owned();
        if let Some(binding) = self.additions.binding().filter(|_| !self.has_packages) {
            code = format!("{code}\n{}", binding.imports);
        }
        let way = &runtime.way;
        if !way.prelude.is_empty() {
            // Such a runtime has nothing that could run it.
            if warm.is_exact(&code) {
                return None;
            }
            code = format!("{code}\n{}", way.imports);
        }
        // What a pre-started runtime has loaded may be one of its packages, in another version.
        let is_alone = self.files.len() == 1 && !self.has_packages;
        let [before, after, leave] = warm.code(&code, is_alone)?;
        let (mut env, mut argv) = (launch.env.clone(), self.argv.clone());
        let mut script = prepared.unwrap_or(&definition.source.file);
        let bound = self.additions.bound();
        let by_words = bound.filter(Bound::is_loaded_by_words);
        let loaded = by_words.as_ref().map(Bound::script);
        if let (Some(bound), Some(loaded)) = (&by_words, &loaded) {
            // It looks at this script before the program, and waits there.
            bound.load(&mut env, &mut argv);
            script = loaded;
        }
        let variable = |(name, value): (&String, &String)| format!("{name}={value}").into();
        Some(Prestart {
            zygote: Zygote {
                fresh: warm.fresh,
                has_input: false,
                gathers: warm.gathers,
                lingers: true,
                first: warm.first(&code).to_owned(),
                argv: argv.iter().map(Into::into).collect(),
                env: env.iter().map(variable).collect(),
                script: script.as_str().into(),
                warm: before,
                fork: after,
                leave,
            },
            limits,
            weight: warm.weight,
            listens: upstream.has_any,
            prelude: String::new(),
            ahead: None,
        })
    }

    /// Whether the runtime could run this before the program.
    fn runs(&self, prelude: &str) -> bool {
        !prelude.is_empty() && self.additions.can_run_preludes()
    }

    /// Whether all that is special about it can be told to a runtime that has started.
    fn is_plain(&self) -> bool {
        let Additions {
            definition,
            runtime,
            upstream,
            has_network,
            ..
        } = self.additions;
        let packages = definition.packages.as_ref();
        let source = self.files.first().map(|file| &file.path);
        // A runtime may have looked there before the program came.
        let is_in_home = |file: &InputFile| file.path.as_str().starts_with(".home");
        // Where nobody was expected to call a server, no pre-started sandbox listens for calls.
        let can_bind = |bound: Bound<'_>| {
            let prelude = &bound.binding.prelude;
            upstream.has_any
                && (self.runs(prelude) || bound.is_loaded_by_words())
                && !bound.wants_new_runtime()
        };
        let can_show = |(display, _): (&Display, _)| self.runs(&display.prelude);
        (runtime.way.embedded.is_none() || !runtime.way.prepared.is_empty())
            && !runtime.way.cold
            && !self.is_given_words
            && !self.is_built
            // A pre-started sandbox reaches no host.
            && !has_network
            && !self.sees_other_runtime
            && source == Some(&definition.source.file)
            && !self.files.iter().any(is_in_home)
            && self.additions.bound().is_none_or(can_bind)
            && self.additions.shows.is_none_or(can_show)
            && (!self.has_packages
                || runtime.way.links_later
                || packages.is_some_and(|how| !how.prelude.is_empty()))
    }
}
