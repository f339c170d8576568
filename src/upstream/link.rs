//! An open connection to a server, whatever carries it; and how one is opened.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connection::Connection;
use super::http::HttpConnection;
use super::launch::ServerStderr;
use super::tokens::Tokens;
use super::{Arguments, CallError, Tool, sse};
use crate::config::{Reach, Remote, Server, Transport};
use crate::secret::Hidden;

/// How long a server may take until it has told its tools. Some are downloaded first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tools of one server.
const MOST_TOOLS: usize = 20_000;
/// Bytes that they say of themselves.
const MOST_SAID: u64 = 32 << 20;
/// Pages of a list of tools.
pub const MOST_PAGES: usize = 200;

/// Why a server is not reached whose entry is wrong.
pub const MISTAKE: &str = "its entry has a mistake";

/// An open connection to a server. Dropping it ends the connection, and the server if we have started it.
pub trait Upstream: Send + Sync {
    /// Whether there will be no more answers.
    fn is_over(&self) -> bool;

    /// Whether its tools must be asked for again.
    fn news(&self) -> &News;

    fn tools(&self) -> Pending<'_, Result<Vec<Tool>, String>>;

    /// Calls a tool; its whole result. Dropping the future takes the call back.
    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments) -> Answered<'a>;

    /// Asks for something that is no tool.
    fn request<'a>(&'a self, method: &'a str, params: &'a Value) -> Answered<'a>;

    /// What must not come back from it, beside what the configuration says.
    fn secrets(&self) -> Vec<Hidden> {
        Vec::new()
    }
}

/// The tools of a server as it tells them, page by page, until it has told enough.
#[derive(Default)]
pub struct Listing {
    pub tools: Vec<Tool>,
    said: u64,
}

impl Listing {
    pub fn add(&mut self, tools: impl Iterator<Item = Tool>) {
        for tool in tools {
            self.said += tool.said();
            if self.is_full() {
                return;
            }
            self.tools.push(tool);
        }
    }

    pub fn is_full(&self) -> bool {
        self.tools.len() >= MOST_TOOLS || self.said > MOST_SAID
    }
}

/// Whether a server has said that its tools are others now.
#[derive(Clone)]
pub struct News {
    stale: Arc<AtomicBool>,
    /// Told of it.
    listeners: Arc<Notify>,
}

impl News {
    pub fn for_listeners(listeners: Arc<Notify>) -> Self {
        Self {
            stale: Arc::default(),
            listeners,
        }
    }

    pub fn tell(&self) {
        self.stale.store(true, Ordering::Relaxed);
        self.listeners.notify_one();
    }

    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }

    /// The same, once.
    pub fn take(&self) -> bool {
        self.stale.swap(false, Ordering::Relaxed)
    }
}

pub type Link = Arc<dyn Upstream>;
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type Answered<'a> = Pending<'a, Result<Value, CallError>>;

/// Reaches a server and asks for its tools. `news` is told when they have changed.
pub async fn open(
    server: &Server,
    stderr: ServerStderr,
    tokens: Option<&Tokens>,
    news: &Arc<Notify>,
) -> Result<(Link, Vec<Tool>), String> {
    let news = || News::for_listeners(news.clone());
    let reach = async {
        let link = match &server.reach {
            Reach::Mistake(_) => return Err(MISTAKE.to_owned()),
            Reach::Program(program) => {
                let connection = Connection::start(program, stderr, news()).await?;
                Arc::new(connection) as Link
            }
            Reach::Remote(remote) => reach(remote, tokens, &news).await?,
        };
        let tools = link.tools().await?;
        Ok((link, tools))
    };
    match timeout(PATIENCE, reach).await {
        Ok(opened) => opened,
        Err(_) => Err(format!("it did not answer in {} s", PATIENCE.as_secs())),
    }
}

async fn reach(
    remote: &Remote,
    tokens: Option<&Tokens>,
    news: &(impl Fn() -> News + Sync),
) -> Result<Link, String> {
    let older = async || {
        let opened = sse::open(remote, news()).await;
        opened.map(|connection| Arc::new(connection) as Link)
    };
    if remote.transport == Some(Transport::Sse) {
        return older().await;
    }
    match HttpConnection::open(remote, tokens, news()).await {
        Ok(connection) => Ok(Arc::new(connection)),
        // What an older server says to a POST there.
        Err(refused) if refused.may_be_older && remote.transport.is_none() => {
            older().await.map_err(|_| refused.why)
        }
        Err(refused) => Err(refused.why),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_that_never_ends_its_list_is_heard_so_far() {
        let tool = |number: usize, text: usize| {
            let said = json!({ "name": format!("t{number}"), "description": "d".repeat(text), "inputSchema": { "title": "t".repeat(text) } });
            Tool::read(said).expect("a tool")
        };
        let mut few = Listing::default();
        few.add((0..3).map(|number| tool(number, 100_000)));
        assert_eq!((few.tools.len(), few.is_full()), (3, false));
        assert!(few.tools[0].description.chars().count() < 20_010);
        let mut large = Listing::default();
        large.add((0..1000).map(|number| tool(number, 100_000)));
        assert!(
            large.is_full() && large.tools.len() < 300,
            "{}",
            large.tools.len()
        );
        let mut many = Listing::default();
        many.add((0..30_000).map(|number| tool(number, 1)));
        assert_eq!((many.tools.len(), many.is_full()), (MOST_TOOLS, true));
    }
}
