//! The folder of scripts, and what becomes of it when it changes.

mod catalog;
mod scan;

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::inotify;
use tokio::net::unix::pipe;
use tokio::task::spawn_blocking;

use super::Shared;
use crate::mcp::{Catalog, Server};
use crate::service::Service;
use catalog::{Key, Scripts, changes, choose, is_free, is_same};
pub use scan::read as read_script;
use scan::scan;

/// Editors write a file in several steps; this waits until they are through.
const SETTLE: Duration = Duration::from_millis(100);

/// What a folder publishes.
pub struct Folder {
    path: PathBuf,
    shared: Arc<Shared>,
    /// What was there at the last look.
    found: Scripts,
    /// Those that are in the catalog: a script whose name was taken is not.
    listed: Scripts,
}

impl Folder {
    /// Reads the folder. A script that cannot be published is complained about and left out.
    pub fn open(path: &Path, service: Arc<Service>) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(service));
        Ok(Self {
            path: path.to_owned(),
            found: scan(path, &shared)?,
            listed: Scripts::new(),
            shared,
        })
    }

    /// Adds the scripts to the catalog. What is there already stays.
    pub fn fill(&mut self, catalog: &mut Catalog) {
        self.listed = choose(&self.found, |key| is_free(catalog, key));
        catalog::add(catalog, &self.listed);
    }

    /// Follows the changes of the folder until the future is dropped.
    ///
    /// Ends early, with a complaint, if the kernel will not tell of changes.
    pub async fn watch(mut self, server: &Arc<Server>) {
        let Err(error) = self.follow(server).await;
        complain(
            &self.path.display().to_string(),
            &format!("not watched: {error}"),
        );
    }

    async fn follow(&mut self, server: &Arc<Server>) -> io::Result<Infallible> {
        use inotify::{CreateFlags, WatchFlags};
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO;
        inotify::add_watch(&events, &self.path, flags)?;
        // Not a pipe, but read like one: whole events, and nothing while there are none.
        let events = pipe::Receiver::from_owned_fd_unchecked(events)?;
        // What changed between the first look and the watch.
        self.look(server).await;
        let mut buffer = [0; 4096];
        loop {
            // The events themselves do not matter: we look at everything.
            events.readable().await?;
            tokio::time::sleep(SETTLE).await;
            while events.try_read(&mut buffer).is_ok_and(|read| read > 0) {}
            self.look(server).await;
        }
    }

    /// Looks at the folder anew and tells the server's clients what has changed.
    async fn look(&mut self, server: &Arc<Server>) {
        let (path, shared) = (self.path.clone(), self.shared.clone());
        // Away from the threads that answer: a folder may be large, or far away.
        let scanned = spawn_blocking(move || scan(&path, &shared)).await;
        let found = match scanned.unwrap_or_else(|lost| Err(io::Error::other(lost))) {
            Ok(found) => found,
            Err(error) => {
                complain(&self.path.display().to_string(), &error.to_string());
                return;
            }
        };
        if is_same(&self.found, &found) {
            return;
        }
        // Nobody else changes the catalog while we serve.
        let catalog = server.catalog();
        let before = std::mem::take(&mut self.listed);
        let ours = |key: &Key| before.contains_key(key) || is_free(&catalog, key);
        let listed = choose(&found, ours);
        server.change(&changes(&before, &listed), |catalog| {
            before.keys().for_each(|key| catalog::remove(catalog, key));
            catalog::add(catalog, &listed);
        });
        (self.found, self.listed) = (found, listed);
    }
}

/// The surface of a folder is whoever edits it, and reads standard error.
fn complain(name: &str, why: &str) {
    eprintln!("hotcell: {}: {}", name.escape_debug(), why.escape_debug());
}
