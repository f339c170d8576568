//! Who is told of a server, and which programs mean it.

use super::{Kind, UpstreamServer, find};
use crate::upstream::Tool;

impl UpstreamServer {
    /// Whether somebody is told of it: not of functions of which there are none yet.
    pub fn is_shown(&self) -> bool {
        matches!(self.kind, Kind::Configured(_)) || !self.known().is_empty()
    }

    pub fn is_lasting(&self) -> bool {
        self.lasting
    }

    /// Whether a program may call this one.
    pub fn is_named_in(&self, code: &str) -> bool {
        let own = match &self.kind {
            Kind::Functions(functions, _) => functions.is_named_in(code),
            Kind::Configured(_) => None,
        };
        own.unwrap_or_else(|| code.contains(&self.alias))
    }

    /// Those of them that clients get as they are.
    pub fn exposed(&self) -> Vec<Tool> {
        let known = self.known();
        let exposed = self.settings().into_iter().flat_map(|it| &it.expose);
        let tools = exposed.map(|name| find(&known, name));
        tools.filter_map(Result::ok).cloned().collect()
    }
}
