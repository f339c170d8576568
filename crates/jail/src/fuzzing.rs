//! The fuzz target `spec`: what one of our processes may read of another.

use std::fmt::Debug;

use crate::codec::{Codec, from_bytes, to_bytes};
use crate::policy::Policy;
use crate::spec::{SpawnRequest, SpawnerSpec, Start, Status};

pub fn spec(bytes: &[u8]) {
    same::<SpawnerSpec>(bytes);
    same::<SpawnRequest>(bytes);
    same::<Status>(bytes);
    same::<Start>(bytes);
    same::<Policy>(bytes);
}

/// A value has one layout: what can be read is what would be written.
fn same<T: Codec + Debug>(bytes: &[u8]) {
    if let Ok(value) = from_bytes::<T>(bytes) {
        assert_eq!(to_bytes(&value), bytes, "{value:?}");
    }
}

#[test]
fn nothing_that_was_found_breaks_the_codec() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/spec");
    let files = std::fs::read_dir(corpus).expect("a corpus");
    let files: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    assert!(!files.is_empty());
    for path in files {
        println!("{}", path.display());
        let bytes = std::fs::read(path).expect("a file");
        spec(&bytes);
        (0..bytes.len()).for_each(|end| spec(&bytes[..end]));
    }
}
