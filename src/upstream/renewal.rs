//! Which servers there are: as the configuration says, and again when it says something else.

use std::path::Path;
use std::sync::Arc;

use super::approval::Approved;
use super::ledger::Ledger;
use super::lifecycle::Lifecycle;
use super::storage::Memory;
use super::{Functions, ServerStderr, UpstreamServer, UpstreamServers, alias, launch};
use crate::config::Server;

impl UpstreamServers {
    /// Those of the configuration and functions of this process. Nothing of them is remembered.
    pub fn new(
        configured: impl IntoIterator<Item = (String, Server)>,
        functions: impl IntoIterator<Item = (String, Arc<dyn Functions>)>,
        stderr: ServerStderr,
    ) -> Self {
        let servers = Self {
            stderr,
            ..Self::default()
        };
        servers.with(functions).renewed(configured)
    }

    /// The same, with the tools that are remembered in this folder.
    pub fn remembered(
        state: Option<&Path>,
        configured: impl IntoIterator<Item = (String, Server)>,
        functions: impl IntoIterator<Item = (String, Arc<dyn Functions>)>,
        stderr: ServerStderr,
    ) -> Self {
        let servers = Self {
            stderr,
            state: state.map(Path::to_owned),
            approved: Arc::new(Approved::in_folder(state.map(Path::to_owned))),
            ..Self::default()
        };
        servers.with(functions).renewed(configured)
    }

    fn with(mut self, functions: impl IntoIterator<Item = (String, Arc<dyn Functions>)>) -> Self {
        for (name, functions) in functions {
            let alias = self.free_alias(&name);
            let server = UpstreamServer::functions(name, alias, functions);
            self.all.push(Arc::new(server));
        }
        self
    }

    /// The same functions, and these servers of the configuration. Those that are as before go on running.
    pub fn renewed(&self, configured: impl IntoIterator<Item = (String, Server)>) -> Self {
        let functions = self.all.iter().filter(|it| it.settings().is_none());
        let mut renewed = Self {
            all: functions.cloned().collect(),
            stderr: self.stderr,
            state: self.state.clone(),
            news: self.news.clone(),
            searcher: self.searcher.clone(),
            approved: self.approved.clone(),
            pseudonyms: self.pseudonyms.clone(),
        };
        // Without an end otherwise, if one of them is this server.
        let nested = launch::is_upstream();
        for (name, server) in configured.into_iter().filter(|_| !nested) {
            let alias = renewed.free_alias(&name);
            let same = |it: &&Arc<UpstreamServer>| {
                it.name == name && it.alias == alias && it.settings() == Some(&server)
            };
            let kept = self.all.iter().find(same).cloned();
            let make = || {
                let state = self.state.as_deref();
                let memory = state.and_then(|state| Memory::of(state, &name, &server));
                let (stderr, news) = (self.stderr, self.news.clone());
                let lifecycle = Lifecycle::new(name.clone(), server.clone(), stderr, news, memory);
                let names = (name.clone(), alias.clone());
                let (approved, pseudonyms) = (self.approved.clone(), self.pseudonyms.clone());
                let server = UpstreamServer::configured(names, lifecycle, approved, pseudonyms);
                Arc::new(server)
            };
            renewed.all.push(kept.unwrap_or_else(make));
        }
        renewed
    }

    fn free_alias(&self, name: &str) -> String {
        let mut alias = alias(name);
        while self.all.iter().any(|other| other.alias == alias) {
            alias += "_2";
        }
        alias
    }

    /// The same for one run, whose calls are written down and held to what it may.
    pub fn for_run(&self, ledger: &Arc<Ledger>) -> Self {
        let all = self.all.iter().map(|it| Arc::new(it.for_run(ledger)));
        Self {
            all: all.collect(),
            stderr: self.stderr,
            state: None,
            news: self.news.clone(),
            searcher: self.searcher.clone(),
            approved: self.approved.clone(),
            pseudonyms: self.pseudonyms.clone(),
        }
    }
}
