//! Digests of content: SHA-256 over canonical JSON.

use std::io;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The hexadecimal SHA-256 (64 digits) of the value's JSON.
///
/// Equal values have equal digests: structs serialise in the order of their fields, and maps are ordered
/// (`serde_json` without `preserve_order`).
pub fn digest<T: Serialize + ?Sized>(value: &T) -> String {
    struct Feed(Sha256);
    impl io::Write for Feed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut feed = Feed(Sha256::new());
    // Writing to a hash can't fail, and this crate's types have string keys only.
    serde_json::to_writer(&mut feed, value).expect("the value serialises to JSON");
    hex(&feed.0.finalize())
}

/// The first `digits` hexadecimal digits (at most 64) of the text's SHA-256; short names for long ones.
pub fn short_hash(text: &str, digits: usize) -> String {
    let mut hash = hex(&Sha256::digest(text.as_bytes()));
    hash.truncate(digits);
    hash
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String can be written to");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha256_of_json() {
        // printf '{"a":1,"b":2}' | sha256sum
        let value = serde_json::json!({"b": 2, "a": 1});
        assert_eq!(digest(&value), "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777");
        assert_eq!(short_hash("", 10), "e3b0c44298");
    }
}
