//! A runtime that hotcell fetched itself: no shim, whatever it looks like, and its
//! receipt says what it needs.

use std::path::Path;

use jail::Tree;

use super::{Refusal, Runtime, Tool, in_path};
use crate::language::{Surroundings, Way};
use crate::runtimes::RuntimesFolder;

/// The runtime that the real path `path` is, if it is a fetched one.
pub fn find(
    command: &str,
    path: &Path,
    place_name: &str,
    way: &Way,
    around: &Surroundings,
) -> Result<Option<Runtime>, Refusal> {
    let fetched = around.data.as_deref().map(RuntimesFolder::in_data);
    let found = fetched.and_then(|it| Some((it.receipt_of(path)?, it)));
    let Some(((root, receipt), folder)) = found else {
        return Ok(None);
    };
    if !folder.is_as_fetched(&root) {
        return Err(Refusal::Damaged);
    }
    let tree = Tree {
        host: root,
        cell: Path::new("/opt").join(place_name),
    };
    let inside = path
        .strip_prefix(&tree.host)
        .map_err(std::io::Error::other)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let cell = text(&tree.cell);
    let mut runtime = Runtime {
        command: command.to_owned(),
        path: path.to_owned(),
        program: text(&tree.cell.join(inside)),
        libraries: receipt
            .libraries
            .iter()
            .map(|folder| text(&folder.below(&tree.cell)))
            .collect(),
        prefix: Some(tree),
        way: way.clone(),
        tools: Vec::new(),
        shown: Vec::new(),
        env: receipt
            .env
            .into_iter()
            .map(|(name, value)| (name, value.replace("{root}", &cell)))
            .collect(),
    };
    // What it runs on is found by its `#!` line, so it must be in the cell and in its PATH.
    for (at, needed) in receipt.requires.iter().enumerate() {
        let place_name = format!("{place_name}.on.{at}");
        let way = Way::default();
        let mut candidates = in_path(needed, around);
        let found = candidates.find_map(|candidate| {
            Runtime::from_candidate(needed, &candidate, &place_name, &way, around).ok()
        });
        let found = found.ok_or_else(|| {
            let why = format!("it needs `{needed}`, which is not installed");
            std::io::Error::new(std::io::ErrorKind::NotFound, why)
        })?;
        runtime.tools.push(Tool {
            command: found.command,
            path: found.path,
            program: found.program,
            prefix: found.prefix,
        });
    }
    Ok(Some(runtime))
}
