//! What a program is given beside its own files: the module `hotcell`, the egress proxy, upstream servers' tools, and what shows
//! pictures and values.

use crate::cell::Launch;
use crate::language::{Binding, Definition, Display, Runtime, Session, Wants};
use crate::request::InputFile;

use super::binding::{Bound, find_command, place_command};
use super::{UpstreamInputs, display, module, network};

/// What decides which of these a program gets.
pub struct Additions<'a> {
    pub definition: &'a Definition,
    pub runtime: &'a Runtime,
    /// The runtime's, if it is known.
    pub version: Option<&'a str>,
    /// The program on its command line, and its text.
    pub program: &'a str,
    pub code: &'a [u8],
    pub upstream: &'a UpstreamInputs,
    pub has_network: bool,
    /// Whether it has a module `mcp` of its own.
    pub has_own_mcp: bool,
    pub session: Option<&'a Session>,
    /// What lets it show something, if it may.
    pub shows: Option<(&'a Display, Wants)>,
}

impl<'a> Additions<'a> {
    /// What lets it call the tools of upstream servers in its own language, if it may.
    pub fn binding(&self) -> Option<&'a Binding> {
        let binding = self.definition.binding.as_ref();
        binding.filter(|_| !self.upstream.names.is_empty())
    }

    /// Whether it calls them by the command `mcp`.
    fn has_command(&self) -> bool {
        self.binding().is_none() && !self.upstream.names.is_empty()
    }

    /// The variables that a pre-started runtime must have from its start.
    pub fn before_start(&self, mut launch: Launch) -> Launch {
        if self.has_command() {
            find_command(&mut launch);
        }
        launch
    }

    /// Adds all of it to a launch that has the program's files.
    pub fn add(&self, mut launch: Launch) -> Launch {
        if self.session.is_none() {
            launch = module::add(launch, self.definition);
        }
        if self.has_network {
            launch = network::grant(launch, self.runtime);
        }
        launch = match self.bound() {
            Some(bound) => bound.bind(launch),
            None if self.has_command() => place_command(launch),
            None => launch,
        };
        if let Some(shows) = self.shows {
            launch = display::equip(launch, shows, self.runtime, self.program);
        }
        // One without a prelude is told nothing.
        let prelude = &self.runtime.way.prelude;
        if let Some(prestart) = launch.prestart.as_mut().filter(|_| !prelude.is_empty()) {
            let wants = self.shows.map(|(_, wants)| wants).unwrap_or_default();
            let own = prelude.replace("{wants}", wants.words());
            prestart.prelude = format!("{}\n{own}", prestart.prelude);
        }
        let display = self.definition.display.as_ref();
        match display.filter(|_| self.session.is_some_and(|session| session.shows)) {
            Some(display) => display::lay_out(launch, display, Wants::default()),
            None => launch,
        }
    }

    /// How it calls them, if it may.
    pub fn bound(&self) -> Option<Bound<'a>> {
        let binding = self.binding()?;
        Some(Bound {
            binding,
            runtime: self.runtime,
            program: self.program,
            code: self.code,
            servers: &self.upstream.names,
            configured: &self.upstream.configured,
            is_ours: !self.has_own_mcp,
        })
    }
}

/// Whether a file is, or is in, a module `mcp` at the top of the workspace.
pub fn is_mcp_module(file: &InputFile) -> bool {
    let first = file.path.components().next();
    first.is_some_and(|first| first == "mcp" || first.starts_with("mcp."))
}
