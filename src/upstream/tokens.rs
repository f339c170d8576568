//! The tokens of a login, kept between runs in a file for its owner alone; and the login itself. The protocol is rmcp's.

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    StoredCredentials,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::http::{client, headers, install_tls, unreachable};
use super::lifecycle::lock;
use super::{scrub, storage};
use crate::config::Remote;
use crate::secret::Hidden;

/// How long somebody has to log in.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The first line of a browser's request.
const LONGEST: u64 = 16 << 10;
const PAGE: &str = "You are logged in. This page can be closed.";

/// Where the tokens of one server are.
#[derive(Debug, Clone)]
pub struct Tokens {
    file: PathBuf,
    /// Those that this process had, which must not come back from the server.
    seen: Arc<Mutex<Vec<Hidden>>>,
}

type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

impl Tokens {
    pub fn in_file(file: PathBuf) -> Self {
        Self {
            file,
            seen: Arc::default(),
        }
    }

    /// Whether somebody has logged in.
    pub fn are_there(&self) -> bool {
        self.file.is_file()
    }

    pub fn secrets(&self) -> Vec<Hidden> {
        lock(&self.seen).clone()
    }

    fn see(&self, text: &str) {
        let stored: Value = serde_json::from_str(text).unwrap_or_default();
        let tokens = ["access_token", "refresh_token", "id_token"].into_iter();
        let tokens = tokens.filter_map(|name| stored["token_response"][name].as_str());
        let mut seen = lock(&self.seen);
        for token in tokens.map(Hidden::new) {
            if !seen.contains(&token) {
                seen.push(token);
            }
        }
    }

    /// What gets and renews tokens for a server.
    async fn manager(&self, remote: &Remote) -> Result<AuthorizationManager, AuthError> {
        install_tls();
        let mut manager = AuthorizationManager::new(remote.url.clone()).await?;
        manager.set_credential_store(self.clone());
        Ok(manager)
    }

    /// The same if somebody has logged in.
    pub async fn stored(&self, remote: &Remote) -> Option<AuthorizationManager> {
        let mut manager = self.manager(remote).await.ok()?;
        let mut found = manager.initialize_from_store().await;
        if found.is_err() {
            // Some servers say only with a refusal where tokens come from.
            let challenge = challenge(remote).await.ok()?;
            let metadata = manager.resolve_metadata_from_challenge(challenge.as_deref());
            let metadata = metadata.await.ok()?.metadata;
            manager.set_metadata(metadata);
            found = manager.initialize_from_store().await;
        }
        matches!(found, Ok(true)).then_some(manager)
    }

    /// Lets somebody log in with a browser, which `show` is told the address for.
    pub async fn log_in(&self, remote: &Remote, show: impl FnOnce(&str)) -> Result<(), String> {
        let fail = |error: AuthError| scrub::line(&error.to_string(), &self.secrets());
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?;
        let callback = format!("http://127.0.0.1:{}/callback", port.port());
        let mut manager = self.manager(remote).await.map_err(fail)?;
        let challenge = challenge(remote).await?;
        let found = manager.resolve_metadata_from_challenge(challenge.as_deref());
        let found = found.await.map_err(fail)?;
        manager.set_metadata(found.metadata);
        let request = AuthorizationRequest::new(&callback)
            .with_client_name("hotcell")
            .with_initial_scope_selection();
        let request = match challenge {
            Some(challenge) => request.with_challenge(challenge),
            None => request,
        };
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| fail(error))?;
        show(session.get_authorization_url());
        let came = tokio::time::timeout(PATIENCE, came_back(&listener, &callback)).await;
        let address = came.map_err(|_| "nobody has logged in".to_owned())?;
        let done = session.handle_callback_url(&address).await;
        done.map(drop).map_err(fail)
    }
}

/// What a server says about who may use it, to one who has no token.
async fn challenge(remote: &Remote) -> Result<Option<String>, String> {
    let hello = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "hotcell", "version": env!("CARGO_PKG_VERSION") },
        },
    });
    let request = client().await?.post(remote.url.clone());
    let request = request
        .headers(headers(remote).into_iter().collect())
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(hello.to_string());
    let response = request.send().await.map_err(|error| unreachable(&error))?;
    let said = response.headers().get(WWW_AUTHENTICATE);
    let said = said.and_then(|it| it.to_str().ok()).map(str::to_owned);
    Ok(said.filter(|_| response.status() == StatusCode::UNAUTHORIZED))
}

/// Waits for the browser to come back, and for nothing else; the address that it came to.
async fn came_back(listener: &TcpListener, callback: &str) -> String {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let answered = tokio::time::timeout(Duration::from_secs(5), answer(stream, callback));
        if let Ok(Some(address)) = answered.await {
            return address;
        }
    }
}

async fn answer(mut stream: TcpStream, callback: &str) -> Option<String> {
    let mut line = String::new();
    let mut reader = BufReader::new(&mut stream).take(LONGEST);
    reader.read_line(&mut line).await.ok()?;
    let query = line
        .strip_prefix("GET /callback?")
        .and_then(|it| it.split(' ').next());
    let (status, text) = match query {
        Some(_) => ("200 OK", PAGE),
        None => ("404 Not Found", ""),
    };
    let length = text.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    query.map(|query| format!("{callback}?{query}"))
}

impl CredentialStore for Tokens {
    fn load<'a, 'b>(&'a self) -> Stored<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let Some(text) = storage::read(&self.file) else {
                return Ok(None);
            };
            self.see(&text);
            Ok(serde_json::from_str(&text).ok())
        })
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> Stored<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let text = serde_json::to_string(&credentials).unwrap_or_default();
            self.see(&text);
            let written = storage::write(&self.file, &text);
            written.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
        })
    }

    fn clear<'a, 'b>(&'a self) -> Stored<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let _ = fs::remove_file(&self.file);
            Ok(())
        })
    }
}
