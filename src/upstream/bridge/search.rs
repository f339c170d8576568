//! Finding tools by words, among the servers of a run.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::Bridge;
use crate::upstream::search::Hit;
use crate::upstream::{MOST_HITS, discover, signature};

/// How many are found at most, for a program that asks for more than usual.
const MOST: usize = 100;
/// How long servers that have not told their tools yet may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Bridge {
    pub(super) async fn search(&self, query: &str, limit: usize) -> Value {
        let hit = |hit: Hit| {
            json!({
                "server": hit.server.name,
                "serverAlias": hit.server.alias,
                "name": hit.tool.name,
                "alias": signature::spelled(&hit.tool.name),
                "description": hit.tool.description,
                "inputSchema": hit.tool.input,
                "signature": hit.signature(),
            })
        };
        self.found(query, limit)
            .await
            .into_iter()
            .map(hit)
            .collect()
    }

    /// The tools that fit best. A server that does not answer has nothing to be found.
    pub(super) async fn found(&self, query: &str, limit: usize) -> Vec<Hit> {
        let unknown = self.servers.iter().filter(|it| it.known().is_empty());
        let unknown: Vec<_> = unknown.cloned().collect();
        let _ = timeout(PATIENCE, discover(&unknown)).await;
        let limit = match limit {
            0 => MOST_HITS,
            limit => limit.min(MOST),
        };
        let (hits, _) = self.searcher.search(&self.servers, query, limit);
        let all = hits.into_iter().flat_map(|hit| self.each(hit));
        all.take(limit).collect()
    }

    /// A program calls one of them: the tools of the same name on other servers are hits of their own.
    fn each(&self, hit: Hit) -> Vec<Hit> {
        let others = hit.also.iter().filter_map(|alias| {
            let server = self.servers.iter().find(|it| it.alias == *alias)?;
            let known = server.known();
            let tool = known.iter().find(|tool| tool.name == hit.tool.name)?;
            Some(Hit {
                server: server.clone(),
                tool: tool.clone(),
                also: Vec::new(),
            })
        });
        let others: Vec<Hit> = others.collect();
        [hit].into_iter().chain(others).collect()
    }
}
