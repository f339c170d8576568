//! The folder of scripts, and what becomes of it when it changes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::inotify;
use tokio::net::unix::pipe;

use super::front::{Front, Kind};
use super::script::Script;
use super::{HELPERS, Shared};
use crate::mcp::{Catalog, Change, Runner, Server};

const MOST_SCRIPTS: usize = 1000;
const LARGEST: u64 = 1 << 20;
/// Editors write a file in several steps; this waits until they are through.
const SETTLE: Duration = Duration::from_millis(100);

/// What a folder publishes.
pub struct Folder {
    path: PathBuf,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was there at the last look.
    found: Scripts,
    /// What of it is on offer: a script whose name was taken is not.
    offered: Scripts,
}

type Key = (Group, String);
type Scripts = BTreeMap<Key, Script>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Folder {
    /// Reads the folder. A script that cannot be published is complained about and left out.
    pub fn open(path: &Path, runner: Arc<Runner>) -> io::Result<Self> {
        let folder = Self {
            path: path.to_owned(),
            shared: Arc::new(Shared::new(runner)),
            state: Mutex::default(),
        };
        folder.state().found = folder.scan()?;
        Ok(folder)
    }

    /// Adds the scripts to what is on offer. What is there already stays.
    pub fn fill(&self, catalog: &mut Catalog) {
        let mut state = self.state();
        let offered = choose(&state.found, |key| is_free(catalog, key));
        offer(catalog, &offered);
        state.offered = offered;
    }

    /// Follows the changes of the folder until the future is dropped.
    ///
    /// Ends early, with a complaint, if the kernel will not tell of changes.
    pub async fn watch(&self, server: &Arc<Server>) {
        let watched = self.watch_all(server).await;
        if let Err(error) = watched {
            complain(
                &self.path.display().to_string(),
                &format!("not watched: {error}"),
            );
        }
    }

    async fn watch_all(&self, server: &Arc<Server>) -> io::Result<()> {
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
        self.look(server);
        let mut buffer = [0; 4096];
        loop {
            // The events themselves do not matter: we look at everything.
            events.readable().await?;
            tokio::time::sleep(SETTLE).await;
            while events.try_read(&mut buffer).is_ok_and(|read| read > 0) {}
            self.look(server);
        }
    }

    /// Looks at the folder anew and tells the server's clients what has changed.
    fn look(&self, server: &Arc<Server>) {
        let found = match self.scan() {
            Ok(found) => found,
            Err(error) => {
                complain(&self.path.display().to_string(), &error.to_string());
                return;
            }
        };
        let mut state = self.state();
        if is_same(&state.found, &found) {
            return;
        }
        // Nobody else changes what is on offer while we serve.
        let catalog = server.catalog();
        let before = std::mem::take(&mut state.offered);
        let ours = |key: &Key| before.contains_key(key) || is_free(&catalog, key);
        let offered = choose(&found, ours);
        server.change(&changes(&before, &offered), |catalog| {
            before.keys().for_each(|key| withdraw(catalog, key));
            offer(catalog, &offered);
        });
        *state = State { found, offered };
    }

    fn scan(&self) -> io::Result<Scripts> {
        let mut paths: Vec<PathBuf> = fs::read_dir(&self.path)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        // So that of two scripts with one name it is always the same that wins.
        paths.sort();
        let mut found = Scripts::new();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name.filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let (front, code) = match read(&path, name) {
                Ok(Some(script)) => script,
                Ok(None) => continue,
                Err(why) => {
                    complain(name, &why);
                    continue;
                }
            };
            if found.len() >= MOST_SCRIPTS {
                complain(name, &format!("more than {MOST_SCRIPTS} scripts"));
                break;
            }
            let key = (Group::of(&front.kind), front.key.clone());
            if found.contains_key(&key) {
                complain(name, &format!("`{}` is taken", key.1));
                continue;
            }
            let script = Script::new(front, name.to_owned(), code, self.shared.clone());
            found.insert(key, script);
        }
        Ok(found)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A script that is to be published; none if it has no front matter.
fn read(path: &Path, name: &str) -> Result<Option<(Front, Vec<u8>)>, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    // Opening a pipe or a device could wait for ever.
    if !found.is_file() || found.len() > LARGEST {
        return Ok(None);
    }
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut code = Vec::new();
    let read = file.take(LARGEST).read_to_end(&mut code);
    read.map_err(|error| error.to_string())?;
    let Ok(text) = std::str::from_utf8(&code) else {
        return Ok(None);
    };
    let Some(front) = Front::read(name, text)? else {
        return Ok(None);
    };
    if HELPERS.iter().any(|(helper, _)| *helper == name) || name.ends_with(".json") {
        return Err("a published script cannot have this name".to_owned());
    }
    Ok(Some((front, code)))
}

impl Group {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Tool => Self::Tools,
            Kind::Prompt => Self::Prompts,
            Kind::Resource(template) if template.is_template() => Self::Templates,
            Kind::Resource(_) => Self::Resources,
        }
    }

    fn change(self) -> Change {
        match self {
            Self::Tools => Change::Tools,
            Self::Prompts => Change::Prompts,
            Self::Resources | Self::Templates => Change::Resources,
        }
    }
}

/// What clients have to be told: lists that differ, and resources with new content.
fn changes(before: &Scripts, after: &Scripts) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut note = |change| {
        if !changes.contains(&change) {
            changes.push(change);
        }
    };
    for key in before.keys().chain(after.keys()) {
        match (before.get(key), after.get(key)) {
            (Some(old), Some(new)) if old.front().listing == new.front().listing => {
                if key.0 == Group::Resources && !old.is_same(new) {
                    note(Change::Updated(key.1.clone()));
                }
            }
            _ => note(key.0.change()),
        }
    }
    changes
}

/// The scripts whose names are free; the others are complained about.
fn choose(found: &Scripts, is_free: impl Fn(&Key) -> bool) -> Scripts {
    let free = |(key, script): &(&Key, &Script)| {
        let free = is_free(key);
        if !free {
            complain(script.file_name(), &format!("`{}` is taken", key.1));
        }
        free
    };
    let chosen = found.iter().filter(free);
    chosen
        .map(|(key, script)| (key.clone(), script.clone()))
        .collect()
}

fn is_same(one: &Scripts, other: &Scripts) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.0 == other.0 && one.1.is_same(other.1))
}

fn is_free(catalog: &Catalog, (group, key): &Key) -> bool {
    !match group {
        Group::Tools => catalog.tools.contains_key(key),
        Group::Prompts => catalog.prompts.contains_key(key),
        Group::Resources => catalog.resources.contains_key(key),
        Group::Templates => catalog.templates.contains_key(key),
    }
}

fn offer(catalog: &mut Catalog, scripts: &Scripts) {
    for ((group, _), script) in scripts {
        match group {
            Group::Tools => catalog.add_tool(script.clone()),
            Group::Prompts => catalog.add_prompt(script.clone()),
            Group::Resources | Group::Templates => catalog.add_resource(script.clone()),
        }
    }
}

fn withdraw(catalog: &mut Catalog, (group, key): &Key) {
    match group {
        Group::Tools => drop(catalog.tools.remove(key)),
        Group::Prompts => drop(catalog.prompts.remove(key)),
        Group::Resources => drop(catalog.resources.remove(key)),
        Group::Templates => drop(catalog.templates.remove(key)),
    }
}

/// The surface of a folder is whoever edits it, and reads standard error.
fn complain(name: &str, why: &str) {
    eprintln!("hotcell: {}: {}", name.escape_debug(), why.escape_debug());
}
