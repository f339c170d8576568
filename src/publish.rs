//! Scripts of a folder as tools, prompts and resources.
//!
//! A script says in its leading comment what it is (`front`), runs in a cell like
//! any other code, and returns what it prints. With more to say it prints lines
//! under a mark (`talk`): content of every kind, progress, questions. What it says
//! is as hostile as anything from a cell: bounded, checked, and only then believed.
//!
//! `folder` follows the files, `script` is one of them as an object of [`crate::mcp`],
//! `call` runs it (again and again while it asks), `listen` hears it, `seal` lets a
//! client keep the answers meanwhile. `docs/publish.md` is the user's side of it.

mod ask;
mod block;
mod call;
mod check;
mod folder;
mod front;
mod listen;
mod pace;
mod render;
mod script;
mod seal;
mod talk;
mod template;

use std::sync::Arc;

pub use folder::Folder;

use crate::service::Service;
use seal::Sealer;

/// Small libraries that lie beside every script; it uses the one it can.
const HELPERS: [(&str, &str); 3] = [
    ("hotcell.py", include_str!("publish/helpers/hotcell.py")),
    ("hotcell.js", include_str!("publish/helpers/hotcell.js")),
    ("hotcell.sh", include_str!("publish/helpers/hotcell.sh")),
];

/// What all scripts of a folder share.
struct Shared {
    service: Arc<Service>,
    sealer: Sealer,
}

impl Shared {
    fn new(service: Arc<Service>) -> Self {
        let sealer = Sealer::new();
        Self { service, sealer }
    }
}
