//! What a message takes in memory once it is read, which may be a hundred times what it has as text.

use super::{Fault, Garbled, IdSearch};
use crate::memory_budget::{Hold, json_values};

/// What a value takes beside its text: its place in a list or object, which may be half empty, and what it begins itself.
const VALUE: usize = 200;
/// Values that one message may have; a list of as many files as are allowed has a tenth of that.
const MOST_VALUES: usize = 500_000;
/// A text of so many bytes is read within a millisecond.
const SHORT: usize = 64 << 10;

/// Reads what has come, aside if that takes long, and holds what it is read into too.
pub async fn read<T: Send + 'static>(
    bytes: Vec<u8>,
    mut hold: Hold,
    parse: fn(&[u8]) -> Result<T, Garbled>,
) -> Result<(T, Hold), Garbled> {
    let is_short = bytes.len() <= SHORT;
    let work = move || {
        weigh(&bytes, &mut hold)?;
        Ok((parse(&bytes)?, hold))
    };
    if is_short {
        return work();
    }
    let interrupted = |_| Fault::new(Fault::INTERNAL, "it could not be read");
    let read = tokio::task::spawn_blocking(work).await;
    read.map_err(|error| Garbled::of(&[], interrupted(error)))?
}

fn weigh(bytes: &[u8], hold: &mut Hold) -> Result<(), Garbled> {
    let count = json_values(bytes);
    if count > MOST_VALUES {
        let message = format!("a message may have {MOST_VALUES} values at most");
        return Err(Garbled::of(
            bytes,
            Fault::new(Fault::INVALID_REQUEST, message),
        ));
    }
    match hold.grow(count * VALUE) {
        true => Ok(()),
        false => Err(Garbled::of(bytes, Fault::busy())),
    }
}

impl Garbled {
    /// A message that is not read, with its id if that can be found.
    pub fn of(bytes: &[u8], fault: Fault) -> Self {
        let mut search = IdSearch::default();
        search.feed(bytes);
        Self {
            id: search.found(),
            fault: Box::new(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::message::parse;

    #[tokio::test]
    async fn a_message_of_too_many_values_is_refused_under_its_id() {
        let message = |count: usize| {
            let list = "[],".repeat(count);
            format!(r#"{{"jsonrpc":"2.0","method":"ping","params":{{"x":[{list}0]}},"id":7}}"#)
        };
        let ask = async |count| {
            let bytes = message(count).into_bytes();
            let hold = Hold::of(2 * bytes.len()).unwrap();
            read(bytes, hold, parse).await
        };
        assert!(ask(MOST_VALUES / 4).await.is_ok());
        let refused = ask(MOST_VALUES / 2).await.unwrap_err();
        assert_eq!(refused.fault.code, Fault::INVALID_REQUEST);
        assert_eq!(refused.id.unwrap().to_string(), "7");
        // What an empty list takes as a value is held, and not more than its place in a full one times four.
        let place = size_of::<serde_json::Value>();
        assert!((place * 2..place * 4).contains(&VALUE), "{place}");
    }
}
