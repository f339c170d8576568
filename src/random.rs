//! Random names that cannot be guessed.

use rustix::rand::{GetRandomFlags, getrandom};

/// 128 random bits as 26 letters and digits.
pub fn random_name() -> String {
    encode(&random::<16>())
}

/// Bytes of the kernel's generator.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // Up to 256 bytes come whole, once the kernel has been seeded, which it
        // has long before a program like this one can be started.
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(read) => filled += read,
            Err(rustix::io::Errno::INTR) => {}
            // SECURITY: a name that can be guessed is worse than no server.
            Err(error) => panic!("the kernel has no random numbers: {error}"),
        }
    }
    bytes
}

/// Base 32 in the alphabet of letters and digits that are hard to confuse.
pub fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let letter = |group: usize| {
        let value = (0..5).fold(0, |value, at| value << 1 | bit(group * 5 + at));
        char::from(ALPHABET[usize::from(value)])
    };
    (0..(bytes.len() * 8).div_ceil(5)).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_long_and_never_the_same() {
        assert_eq!(random_name().len(), 26);
        assert_ne!(random_name(), random_name());
        assert_eq!(encode(&[0xff; 5]), "zzzzzzzz");
        assert_eq!(encode(&[0, 0, 0, 0, 1]), "00000001");
    }
}
