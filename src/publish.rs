//! Scripts of a folder as tools, prompts and resources.
//!
//! A script says in its front matter what it is (`front_matter`), runs in a cell like any
//! other code, and returns what it prints. With more to say it prints messages, each a line
//! that begins with a mark (`message_parser`): content of every kind, progress, questions.
//! What it says is as hostile as anything from a cell: bounded, checked, and only then believed.
//!
//! `folder` follows the files, `script` is one of them as an object of [`crate::mcp`],
//! `invocation` runs it (again and again while it asks), `collector` takes in what it says,
//! `request_state` lets a client keep the answers meanwhile, `saved` are scripts that programs have made of their functions, and `skills` has tools as skills. `docs/publish.md` is the user's side.

mod collector;
mod content_block;
mod folder;
mod front_matter;
mod invocation;
mod message_parser;
mod method_result;
mod question;
mod rate_limit;
mod request_state;
mod saved;
mod schema_check;
mod script;
mod skills;
mod template;

use std::sync::Arc;

pub use folder::Folder;
pub use saved::{NAME as SAVED, SavedFolder, SavedTool, SavedTools};
pub use skills::ToolSkills;

use crate::service::Service;
use request_state::StateSigner;

/// Small libraries that lie beside every script; it uses the one it can.
const HELPERS: [(&str, &str); 3] = [
    ("hotcell.py", include_str!("publish/helpers/hotcell.py")),
    ("hotcell.js", include_str!("publish/helpers/hotcell.js")),
    ("hotcell.sh", include_str!("publish/helpers/hotcell.sh")),
];

/// What all scripts of a folder share.
struct Shared {
    service: Arc<Service>,
    signer: StateSigner,
}

impl Shared {
    fn new(service: Arc<Service>) -> Self {
        let signer = StateSigner::new();
        Self { service, signer }
    }
}
