//! The objects that there are because of upstream servers: the tool `search`, and those of their tools that are
//! offered as they are. They come and go with what the servers have.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::Change;
use super::objects::{Catalog, Tool};
use super::passed_tool::PassedTool;
use super::run_tool;
use super::search_tool::SearchTool;
use super::server::Server;
use crate::service::Service;

pub struct UpstreamTools {
    service: Arc<Service>,
    /// What a client saw of them last: by name, and in the description of `run`.
    shown: Shown,
}

type Shown = (BTreeMap<String, serde_json::Value>, Option<String>);

impl UpstreamTools {
    /// Adds what is known of them now. Waits for no server.
    pub fn fill(service: &Arc<Service>, catalog: &mut Catalog) -> Self {
        let mut this = Self {
            service: service.clone(),
            shown: Shown::default(),
        };
        this.replace(catalog);
        this
    }

    /// Looks at them anew, and tells the clients if there is something else to see.
    pub fn update(&mut self, server: &Server) {
        let mut catalog = Catalog::clone(&server.catalog());
        let before = std::mem::take(&mut self.shown);
        before
            .0
            .keys()
            .for_each(|name| drop(catalog.tools.remove(name)));
        self.replace(&mut catalog);
        let news: &[Change] = match self.shown == before {
            true => &[],
            false => {
                // Behind the answers, so that the first search does not wait for it.
                let service = self.service.clone();
                tokio::task::spawn_blocking(move || {
                    service.upstream().map(|it| it.search("", 1).len())
                });
                &[Change::Tools]
            }
        };
        // What looks the same may be of a server that was configured anew.
        server.change(news, |current| current.tools = catalog.tools);
    }

    fn replace(&mut self, catalog: &mut Catalog) {
        let mut added: Vec<Arc<dyn Tool>> = Vec::new();
        let Some(servers) = self.service.upstream() else {
            return;
        };
        if !catalog.tools.contains_key("search") {
            added.push(Arc::new(SearchTool(self.service.clone())));
        }
        for server in servers.all() {
            for tool in server.exposed() {
                let taken = |name: &String| {
                    let same = |it: &Arc<dyn Tool>| it.listing()["name"] == name.as_str();
                    catalog.tools.contains_key(name) || added.iter().any(same)
                };
                let name = tool.spelled();
                let names = [name.clone(), format!("{}_{name}", server.alias)];
                let free = names.into_iter().find(|name| !taken(name));
                match free.and_then(|name| PassedTool::new(server, &tool, &name)) {
                    Some(tool) => added.push(Arc::new(tool)),
                    None => tracing::warn!(server = server.name, "a tool cannot be exposed"),
                }
            }
        }
        let listed = |tool: Arc<dyn Tool>| {
            let listing = tool.listing();
            let name = listing["name"].as_str().unwrap_or_default().to_owned();
            catalog.tools.insert(name.clone(), tool);
            (name, listing)
        };
        let listed = added.into_iter().map(listed).collect();
        self.shown = (
            listed,
            run_tool::upstream_tools(&self.service, run_tool::SEARCH),
        );
    }
}
