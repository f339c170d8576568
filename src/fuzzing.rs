//! The fuzz targets: each takes bytes that a stranger may have sent, and panics if something is wrong.
//!
//! `scripts/fuzz` looks for such bytes by what they reach in the code. `fuzz/corpus` has bytes to begin with, and all that was ever
//! found; every test run feeds them, and a few thousand that differ a little.

pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its folder in `fuzz/corpus` too.
pub const TARGETS: [(&str, Target); 10] = [
    ("archive", crate::runtimes::fuzzing::archive),
    ("bridge", crate::upstream::fuzzing::bridge),
    ("client_hello", crate::egress::fuzzing::client_hello),
    ("egress", crate::egress::fuzzing::egress),
    ("host", crate::request::fuzzing::host),
    ("http", crate::http::fuzzing::http),
    ("json_rpc", crate::mcp::fuzzing::json_rpc),
    ("lock", crate::packages::fuzzing::lock),
    ("page", crate::packages::fuzzing::page),
    ("wheel", crate::packages::fuzzing::wheel),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::TARGETS;

    /// Changes of each file in the corpus; guided runs make thousands in a second, this only keeps the targets honest.
    const CHANGES: u64 = 40;

    #[test]
    fn nothing_that_was_found_breaks_anything_nor_does_what_resembles_it() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        for (name, target) in TARGETS {
            let files = fs::read_dir(corpus.join(name)).expect("a folder for each target");
            let mut count = 0;
            for file in files {
                let path = file.expect("an entry").path();
                println!("{}", path.display());
                let bytes = fs::read(&path).expect("a file");
                target(&bytes);
                (0..CHANGES).for_each(|seed| target(&changed(&bytes, seed)));
                count += 1;
            }
            assert!(count > 0, "{name} has nothing to begin with");
        }
    }

    /// The same with some bytes changed, left out or doubled.
    fn changed(bytes: &[u8], seed: u64) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let mut state = seed;
        let mut below = |end: usize| {
            // splitmix64: short, and good enough to stumble with.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
        };
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            let end = (at + below(8)).min(bytes.len());
            match below(4) {
                0 if at < bytes.len() => bytes[at] ^= 1 << below(8),
                1 => bytes.insert(at, below(256) as u8),
                2 => drop(bytes.drain(at..end)),
                _ => bytes.extend_from_within(at..end),
            }
        }
        bytes
    }
}
