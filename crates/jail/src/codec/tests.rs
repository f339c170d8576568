use std::ffi::OsString;
use std::fmt::Debug;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::*;

/// A round trip, and every way to damage the bytes on it: cut short, too long, one bit flipped.
/// What is damaged is an error, or with a flipped bit perhaps another value, whose only bytes
/// those are; never a panic.
pub fn check<T: Codec + PartialEq + Debug>(value: &T) {
    let bytes = to_bytes(value);
    assert_eq!(&from_bytes::<T>(&bytes).expect("our own bytes"), value);
    for cut in 0..bytes.len() {
        assert!(from_bytes::<T>(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    assert!(from_bytes::<T>(&[&bytes[..], &[0]].concat()).is_err());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            if let Ok(other) = from_bytes::<T>(&flipped) {
                assert_eq!(to_bytes(&other), flipped, "bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn every_kind_of_value_survives_the_trip_and_no_damage_panics() {
    check(&u8::MAX);
    check(&u16::MAX);
    check(&u32::MAX);
    check(&u64::MAX);
    check(&i32::MIN);
    check(&-1);
    check(&1.5);
    check(&true);
    check(&"a b\u{e9}".to_owned());
    check(&OsString::from_vec(vec![0xff, b'a']));
    check(&PathBuf::from("/srv/a"));
    check(&vec![String::new(), "x".to_owned()]);
    check(&Vec::<String>::new());
    check(&Some(3_u32));
    check(&None::<u32>);
}

#[test]
fn a_number_that_does_not_fit_its_type_is_refused() {
    assert!(from_bytes::<u8>(&to_bytes(&256_u64)).is_err());
    assert!(from_bytes::<u16>(&to_bytes(&65_536_u64)).is_err());
    assert!(from_bytes::<u32>(&to_bytes(&u64::MAX)).is_err());
    assert!(from_bytes::<i32>(&to_bytes(&u64::from(u32::MAX))).is_err());
    assert!(from_bytes::<bool>(&to_bytes(&2_u64)).is_err());
}

#[test]
fn a_length_beyond_what_is_there_is_refused_before_anything_is_allocated() {
    for length in [2, 1 << 32, u64::MAX] {
        let bytes = [&to_bytes(&length)[..], &[0; 8]].concat();
        assert!(from_bytes::<Vec<u64>>(&bytes).is_err());
        assert!(from_bytes::<String>(&bytes).is_err() || length <= 8);
    }
}

#[test]
fn bytes_of_another_version_are_refused() {
    let mut bytes = to_bytes(&7_u32);
    bytes[0] += 1;
    assert!(from_bytes::<u32>(&bytes).is_err());
}

#[test]
fn what_is_too_large_for_a_memory_file_is_refused_at_both_ends() {
    let large = vec![0_u8; MAX_SIZE as usize / 8];
    let error = to_memory_file(&large).expect_err("too large");
    assert_eq!(error.raw_os_error(), Some(libc::E2BIG));
    let file = memory_file().expect("a memory file");
    rustix::fs::ftruncate(&file, MAX_SIZE + 1).expect("it grows");
    assert!(read_memory_file(&file).is_err());
}
