//! libFuzzer at work on the target that `FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use hotcell::fuzzing::{TARGETS, Target};

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let mut all = TARGETS
        .into_iter()
        .chain([("spec", jail::fuzzing::spec as Target)]);
    let found = all.find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| panic!("there is no target {name:?}"))
        .1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| CHOSEN(bytes));
