//! What a program with a network needs: the variables by which it finds the egress proxy.

use std::collections::BTreeMap;

use crate::cell::Launch;
use crate::egress::KEY_STORE;
use crate::language::Runtime;
use crate::loopback::PORT;
use crate::request::{CellPath, InputFile};

/// A script that makes older versions of Node use the variables below; newer ones do by
/// themselves, and then it does nothing.
const NODE: &str = include_str!("../../languages/proxy/node.cjs");
const NODE_FILE: &str = ".home/.hotcell/proxy.cjs";

/// Tells the program of the egress proxy. Variables that it has already are its caller's wish, and stay.
pub fn grant(mut launch: Launch, runtime: &Runtime) -> Launch {
    let words = runtime.way.network.iter().map(|word| {
        word.replace("{port}", &PORT.to_string())
            .replace("{key_store}", &format!("/workspace/{KEY_STORE}"))
    });
    let behind = launch.argv.len().min(1);
    launch.argv.splice(behind..behind, words);
    let path = CellPath::parse(NODE_FILE).expect("a plain path");
    let is_new = launch.files.iter().all(|file| file.path != path);
    let script = is_new.then(|| InputFile::from_bytes(path, NODE));
    launch.default_env(variables()).files(script)
}

fn variables() -> BTreeMap<String, String> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let mut variables = BTreeMap::new();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        // Half of the programs know one spelling, half the other.
        variables.insert(name.to_owned(), proxy.clone());
        variables.insert(name.to_lowercase(), proxy.clone());
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.insert(name.to_owned(), "localhost,127.0.0.1,::1".to_owned());
    }
    // Debian's pip refuses to install beside Debian's packages. Those are read-only here: it installs into the program's own home.
    variables.insert("PIP_BREAK_SYSTEM_PACKAGES".to_owned(), "1".to_owned());
    variables.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    let require = format!("--require=/workspace/{NODE_FILE}");
    variables.insert("NODE_OPTIONS".to_owned(), require);
    variables
}
