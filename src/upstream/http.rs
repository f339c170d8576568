//! A server at an address, over streamable HTTP: rmcp's client, which knows both eras of the protocol and its sessions.

mod bounded;
mod errors;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion, SubscriptionFilter,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceError};
use serde_json::Value;
use tokio::task::JoinSet;

use super::link::{Answered, Listing, MOST_PAGES, News, Pending, Upstream};
use super::tokens::Tokens;
use super::{Arguments, CallError, Tool};
use crate::config::Remote;
use crate::secret::Hidden;

use bounded::Bounded;
pub use errors::{LOGIN, unreachable};
use errors::{Refused, failure, innermost, refused};

/// How long it may take to reach a host.
const REACH: Duration = Duration::from_secs(10);
/// Calls at a time; more wait.
const CALLS: usize = 64;

/// An open connection to such a server.
pub struct HttpConnection {
    service: RunningService<RoleClient, Listener>,
    news: News,
    /// Of a login, which must not come back from the server.
    tokens: Option<Tokens>,
    _tasks: JoinSet<()>,
}

impl HttpConnection {
    /// Asks which era the server is of. Some of the older one cannot even be asked that, and are taken for it then.
    pub async fn open(
        remote: &Remote,
        tokens: Option<&Tokens>,
        news: News,
    ) -> Result<Self, Refused> {
        let either = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        match Self::connect(remote, tokens, news.clone(), either).await {
            Err(refused) if refused.may_be_older => {
                Self::connect(remote, tokens, news, ClientLifecycleMode::Initialize).await
            }
            opened => opened,
        }
    }

    async fn connect(
        remote: &Remote,
        tokens: Option<&Tokens>,
        news: News,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, Refused> {
        let plain = |why| Refused {
            why,
            may_be_older: false,
        };
        let client = Bounded(client().await.map_err(plain)?);
        let config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str())
            .custom_headers(headers(remote))
            .max_concurrent_requests(CALLS);
        let has_token = remote.headers.iter().any(|it| it.0 == AUTHORIZATION);
        // What is written down comes before a login.
        let tokens = tokens.filter(|it| !has_token && it.are_there());
        let manager = match tokens {
            Some(tokens) => tokens.stored(remote).await,
            None => None,
        };
        let listener = Listener(news.clone());
        let service = match manager {
            None => {
                let transport = StreamableHttpClientTransport::with_client(client, config);
                listener.serve_with_lifecycle(transport, lifecycle).await
            }
            Some(manager) => {
                let client = AuthClient::new(client, manager);
                let transport = StreamableHttpClientTransport::with_client(client, config);
                listener.serve_with_lifecycle(transport, lifecycle).await
            }
        };
        let service = service.map_err(|error| refused(&error, has_token))?;
        let mut tasks = JoinSet::new();
        let peer = service.peer().clone();
        let is_modern = |version: &ProtocolVersion| *version >= ProtocolVersion::V_2026_07_28;
        if peer
            .peer_info()
            .is_some_and(|it| is_modern(&it.protocol_version))
        {
            // There it must be asked for.
            let news = news.clone();
            tasks.spawn(async move {
                let filter = SubscriptionFilter::builder().tools_list_changed().build();
                let Ok(mut subscription) = peer.listen(filter).await else {
                    return;
                };
                while let Ok(Some(_)) = subscription.next().await {
                    news.tell();
                }
            });
        }
        Ok(Self {
            service,
            news,
            tokens: tokens.cloned(),
            _tasks: tasks,
        })
    }

    async fn list(&self) -> Result<Vec<Tool>, String> {
        let mut tools = Listing::default();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.list_tools(Some(params)).await;
            let page = page.map_err(|error| failure(&error).to_string())?;
            let read = |tool| serde_json::to_value(tool).ok().and_then(Tool::read);
            tools.add(page.tools.into_iter().filter_map(read));
            cursor = page.next_cursor;
            if cursor.is_none() || tools.is_full() {
                break;
            }
        }
        Ok(tools.tools)
    }
}

impl Upstream for HttpConnection {
    fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    fn news(&self) -> &News {
        &self.news
    }

    fn tools(&self) -> Pending<'_, Result<Vec<Tool>, String>> {
        Box::pin(self.list())
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments) -> Answered<'a> {
        Box::pin(async move {
            let params = CallToolRequestParams::new(tool.to_owned());
            let params = params.with_arguments(arguments.to_map()?);
            let result = self.service.call_tool(params).await;
            let result = result.map_err(|error| failure(&error))?;
            Ok(serde_json::to_value(result).unwrap_or(Value::Null))
        })
    }

    fn request<'a>(&'a self, method: &'a str, params: &'a Value) -> Answered<'a> {
        fn read<T: serde::de::DeserializeOwned>(params: &Value) -> Result<T, CallError> {
            let bad = |error: serde_json::Error| CallError::Arguments(error.to_string());
            T::deserialize(params).map_err(bad)
        }
        fn said<T: serde::Serialize>(asked: Result<T, ServiceError>) -> Result<Value, CallError> {
            let answer = asked.map_err(|error| failure(&error))?;
            Ok(serde_json::to_value(answer).unwrap_or(Value::Null))
        }
        Box::pin(async move {
            match method {
                "resources/list" => said(self.service.list_resources(read(params)?).await),
                "resources/read" => said(self.service.read_resource(read(params)?).await),
                "prompts/list" => said(self.service.list_prompts(read(params)?).await),
                "prompts/get" => said(self.service.get_prompt(read(params)?).await),
                _ => Err(CallError::Tool(format!("`{method}` cannot be asked"))),
            }
        })
    }

    fn secrets(&self) -> Vec<Hidden> {
        self.tokens
            .as_ref()
            .map(Tokens::secrets)
            .unwrap_or_default()
    }
}

/// Hears what the server says by itself. It may ask nothing of us.
struct Listener(News);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.tell();
    }

    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("hotcell", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ours)
    }
}

/// The client of all connections. It knows `HTTPS_PROXY` and `NO_PROXY`, and the certificates of this machine.
pub async fn client() -> Result<reqwest::Client, String> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    // It reads files.
    let made = tokio::task::spawn_blocking(|| {
        install_tls();
        reqwest::Client::builder()
            .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(REACH)
            // A connection whose answer was not read to its end stalls the next request.
            .pool_max_idle_per_host(0)
            .redirect(same_origin())
            .build()
    });
    match made.await {
        Ok(Ok(client)) => Ok(CLIENT.get_or_init(|| client).clone()),
        Ok(Err(error)) => Err(format!("no HTTP client: {}", innermost(&error))),
        Err(_) => Err("no HTTP client".to_owned()),
    }
}

/// Only one provider can be installed; a second try says so, and that is fine.
pub fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// SECURITY: headers with tokens go to the origin that they were written for, and a call is never turned into another method.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let keeps = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let first = attempt.previous().first();
        let same = first.is_some_and(|url| url.origin() == attempt.url().origin());
        match keeps && same && attempt.previous().len() < 5 {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

/// What every request to a server says.
pub fn headers(remote: &Remote) -> HashMap<HeaderName, HeaderValue> {
    let header = |(name, value): &(HeaderName, Hidden)| {
        let mut value = HeaderValue::from_str(value.reveal()).ok()?;
        value.set_sensitive(true);
        Some((name.clone(), value))
    };
    remote.headers.iter().filter_map(header).collect()
}
