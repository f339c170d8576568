//! Whether a program can go on in a pre-started runtime, and in which.

use jail::Zygote;

use super::Defaults;
use crate::cell::{Launch, Prestart};
use crate::language::{Binding, Definition, Display, Runtime};
use crate::request::InputFile;

/// What a program is, as far as that decides.
pub struct Program<'a> {
    pub definition: &'a Definition,
    pub runtime: &'a Runtime,
    pub code: &'a [u8],
    /// Whether it has arguments, or variables of its own.
    pub is_given_words: bool,
    /// The command line that it would be started by.
    pub argv: Vec<String>,
    /// The source first.
    pub files: &'a [InputFile],
    pub is_built: bool,
    pub has_network: bool,
    pub has_packages: bool,
    /// What lets it call the tools of upstream servers, if it may.
    pub binding: Option<&'a Binding>,
    /// What lets it show something, if it may.
    pub display: Option<&'a Display>,
}

impl Program<'_> {
    /// The pre-started runtime that `launch` could go on with, if it asks for nothing special.
    pub fn prestart(
        &self,
        launch: &Launch,
        defaults: &Defaults,
        listens: bool,
    ) -> Option<Prestart> {
        let warm = self.definition.warm.as_ref()?;
        let limits = defaults.prestarted_limits();
        if !self.is_plain() || !launch.limits.fit_into(&limits) {
            return None;
        }
        let mut code = String::from_utf8_lossy(self.code).into_owned();
        if let Some(binding) = self.binding.filter(|_| !self.has_packages) {
            code = format!("{code}\n{}", binding.imports);
        }
        let way = &self.runtime.way;
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
        let variable = |(name, value): (&String, &String)| format!("{name}={value}").into();
        Some(Prestart {
            zygote: Zygote {
                fresh: warm.fresh,
                has_input: false,
                gathers: warm.gathers,
                first: warm.first(&code).to_owned(),
                argv: self.argv.iter().map(Into::into).collect(),
                env: launch.env.iter().map(variable).collect(),
                script: self.definition.source.file.as_str().into(),
                warm: before,
                fork: after,
                leave,
            },
            limits,
            weight: warm.weight,
            listens,
            prelude: String::new(),
            ahead: None,
        })
    }

    fn runs(&self, prelude: &str) -> bool {
        !prelude.is_empty() && !self.runtime.way.without_prelude
    }

    /// Whether all that is special about it can be told to a runtime that has started.
    fn is_plain(&self) -> bool {
        let packages = self.definition.packages.as_ref();
        let source = self.files.first().map(|file| &file.path);
        // A runtime may have looked there before the program came.
        let is_in_home = |file: &InputFile| file.path.as_str().starts_with(".home");
        self.runtime.way.embedded.is_none()
            && !self.runtime.way.cold
            && !self.is_given_words
            && !self.is_built
            // A pre-started sandbox reaches no host.
            && !self.has_network
            && source == Some(&self.definition.source.file)
            && !self.files.iter().any(is_in_home)
            && self.binding.is_none_or(|binding| self.runs(&binding.prelude))
            && self.display.is_none_or(|display| !display.prelude.is_empty())
            && (!self.has_packages || packages.is_some_and(|how| !how.prelude.is_empty()))
    }
}
