//! The environment variables of a program.

use std::collections::BTreeMap;
use std::path::Path;

use jail::Limits;

use super::HOME;
use crate::language::{Definition, Runtime};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Ours, then the language's; the later wins, and the request's wins over both.
pub fn environment(definition: &Definition, runtime: &Runtime) -> BTreeMap<String, String> {
    let mut env = base_environment(runtime);
    env.extend(definition.env.clone());
    env.extend(runtime.way.env.clone());
    env
}

/// How many threads a library shall compute with. Most make one for each processor that they see, and a cell sees more than its quota
/// lets it use: on a large machine they would meet the limit of processes, and complain of that.
pub fn threads(limits: &Limits) -> (String, String) {
    let count = limits.cpus.max(1.0).ceil();
    ("OMP_NUM_THREADS".to_owned(), count.to_string())
}

/// What any program has, and what the runtime itself needs.
pub fn base_environment(runtime: &Runtime) -> BTreeMap<String, String> {
    let tools = runtime.tools.iter().map(|it| (&it.prefix, &it.program));
    // What is not under /usr is found by its name too.
    let own = [(&runtime.prefix, &runtime.program)]
        .into_iter()
        .chain(tools);
    let folders = own
        .filter(|(prefix, _)| prefix.is_some())
        .filter_map(|(_, program)| Path::new(program).parent()?.to_str());
    let path: Vec<&str> = folders.chain([PATH]).collect();
    let mut env = BTreeMap::from([
        ("HOME".to_owned(), format!("/workspace/{HOME}")),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("PATH".to_owned(), path.join(":")),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
    ]);
    if !runtime.libraries.is_empty() {
        env.insert("LD_LIBRARY_PATH".to_owned(), runtime.libraries.join(":"));
    }
    env.extend(runtime.env.clone());
    env
}
