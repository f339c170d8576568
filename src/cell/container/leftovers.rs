//! What a server that was killed may have left: a container that it had no time to lose, and the folder of a socket.
//!
//! A container ends with its server. One that was never started has no process to do so; it is known by its label, which names the server.

use std::fs;
use std::path::Path;

use super::command::ContainerEngine;
use super::runtime_folder;

const LABEL: &str = "hotcell.server";
const FOLDERS: &str = "hotcell-container-";

/// Says whose a container is: the number of this process, and when it started.
pub fn label() -> String {
    let own = std::process::id();
    format!("{LABEL}={own}.{}", started(own).unwrap_or_default())
}

/// What the names of this process's folders begin with.
pub fn own_folders() -> String {
    format!("{FOLDERS}{}-", std::process::id())
}

/// Removes what servers have left that are gone, in a thread of its own.
pub fn remove_behind(engine: ContainerEngine) {
    let work = move || {
        remove_folders(&runtime_folder());
        remove_containers(&engine);
    };
    // Without a thread, the next server removes it.
    let _ = std::thread::Builder::new()
        .name("leftovers".to_owned())
        .spawn(work);
}

fn remove_containers(engine: &ContainerEngine) {
    let filter = format!("--filter=label={LABEL}");
    let format = "{{.ID}} {{.Labels}}";
    let list = ["ps", "--all", &filter, "--format", format].map(Into::into);
    let Ok(listed) = engine.ask(&list) else {
        return;
    };
    for line in listed.lines() {
        if let Some((id, labels)) = line.split_once(' ')
            && is_gone(server(labels))
        {
            let _ = engine.ask(&["rm", "--force", id].map(Into::into));
        }
    }
}

fn remove_folders(runtime: &Path) {
    let Ok(entries) = fs::read_dir(runtime) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| {
            let (pid, _) = name.strip_prefix(FOLDERS)?.split_once('-')?;
            pid.parse::<u32>().ok()
        });
        if pid.is_some_and(|pid| started(pid).is_none()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The value of our label, among all of a container: Podman writes `map[a:b c:d]`, Docker `a=b,c=d`.
fn server(labels: &str) -> &str {
    let value = labels.split_once(LABEL).map_or("", |(_, rest)| rest);
    let value = value.trim_start_matches([':', '=']);
    let end = value.find(|it: char| !it.is_ascii_digit() && it != '.');
    &value[..end.unwrap_or(value.len())]
}

/// Whether the process that a label names has ended.
fn is_gone(server: &str) -> bool {
    let named = server.trim().split_once('.');
    let named =
        named.and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse::<u64>().ok()?)));
    // Not ours to judge.
    named.is_some_and(|(pid, start)| started(pid) != Some(start))
}

/// When a process started that still runs, in the kernel's ticks.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // One that nobody has reaped yet has ended all the same.
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_a_server_that_is_gone_from_one_that_runs() {
        let own = label();
        let own = own.split_once('=').expect("a name and a value").1;
        assert!(!is_gone(own));
        assert!(is_gone(&format!("{}.1", std::process::id())));
        assert_eq!(server("map[a:b hotcell.server:12.7 c:d]"), "12.7");
        assert_eq!(server("a=b,hotcell.server=12.7,c=d"), "12.7");
        assert_eq!(server("a=b"), "");
        assert!(is_gone("4194305.7") && !is_gone("x.y") && !is_gone(""));
    }
}
