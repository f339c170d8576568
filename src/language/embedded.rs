//! The engines that come with hotcell as runtimes, and the choice between one and a
//! program of the host.

use std::path::PathBuf;

use super::{Definition, LanguageError, Runtime, Way};

/// The word for a built-in engine in requests, and the path of one in results.
pub const EMBEDDED: &str = "embedded";
/// The word for a program of the host if there is one, and else for a built-in engine.
pub const HOST_FIRST: &str = "host";

impl Runtime {
    /// An engine that runs the program by itself: it needs no file of the host.
    pub(super) fn of_engine(engine: &str, way: &Way) -> Self {
        Self {
            command: engine.to_owned(),
            path: PathBuf::from(EMBEDDED),
            program: jail::ENGINE.to_owned(),
            prefix: None,
            libraries: Vec::new(),
            way: way.clone(),
            tools: Vec::new(),
            shown: Vec::new(),
            env: Default::default(),
        }
    }

    /// Whether the program needs nothing of this host.
    pub fn is_embedded(&self) -> bool {
        self.program == jail::ENGINE
    }

    /// How an engine is started, if one is. All are started alike, so a definition
    /// need not say how: its name, the file, the program it prepares the file for.
    pub fn engine_command(&self, file: &str, args: &[String]) -> Option<Vec<String>> {
        let engine = self.way.embedded.as_deref()?;
        let real = (!self.is_embedded()).then_some(self.program.as_str());
        let ours = [jail::ENGINE, engine, file].into_iter().chain(real);
        let args = args.iter().map(String::as_str);
        Some(ours.chain(args).map(str::to_owned).collect())
    }
}

impl Way {
    /// Whether a request that names `engine` means this way.
    fn is_meant_by(&self, engine: &str) -> bool {
        match self.needs.first() {
            Some(command) => command == engine,
            None => engine == EMBEDDED || self.embedded.as_deref() == Some(engine),
        }
    }
}

impl Definition {
    /// The same with only the ways that a request asks for: `embedded`, `host`, or a program.
    pub fn run_by(&self, engine: &str) -> Result<Self, LanguageError> {
        let ways = self.commands().iter();
        let (hosts, ours): (Vec<&Way>, Vec<&Way>) = ways.partition(|way| !way.needs.is_empty());
        let meant = |ways: &[&Way]| -> Vec<Way> {
            let meant = ways.iter().filter(|way| way.is_meant_by(engine));
            meant.map(|way| (*way).clone()).collect()
        };
        let meant = match engine {
            HOST_FIRST => hosts.iter().chain(&ours).map(|it| (*it).clone()).collect(),
            // A program of the host and an engine of ours may have the same name.
            _ => Some(meant(&hosts))
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| meant(&ours)),
        };
        if !meant.is_empty() {
            return Ok(self.with_commands(meant));
        }
        let known = self.commands().iter().map(|way| match way.needs.first() {
            Some(command) => command.clone(),
            None => EMBEDDED.to_owned(),
        });
        let mut seen = Vec::new();
        for name in known {
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        Err(LanguageError::NoEngine {
            language: self.id.clone(),
            asked: engine.to_owned(),
            known: seen,
        })
    }
}
