//! A state that a client keeps for us: what it has answered so far.
//!
//! SECURITY: it comes back from outside. Whoever could forge one could put
//! answers into a person's mouth, so each carries a MAC and is good for the
//! very request it was made for, and only for a while.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::random::random;

/// How long a person may take, in seconds.
const GOOD_FOR: u64 = 3600;
/// The longest state that we make or read.
const LONGEST: usize = 512 << 10;

/// The key, made anew by each process: a state does not outlive its server.
pub struct StateSigner([u8; 64]);

/// Answers by the key of their question.
pub type Answers = Map<String, Value>;

/// Which request a state belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding(String);

#[derive(Serialize, Deserialize)]
struct State {
    until: u64,
    request: String,
    answers: Answers,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    #[error("`requestState` is not one that this server made")]
    Forged,
    #[error("`requestState` was made for another request")]
    OtherRequest,
    #[error("`requestState` is too old; start again without it")]
    Expired,
    #[error("the answers are too long to be kept in `requestState`")]
    TooLong,
}

impl Binding {
    /// Binds to a method and the parameters that the client must repeat.
    pub fn new(method: &str, params: &Map<String, Value>) -> Self {
        let mut hash = Sha256::new();
        hash.update(method);
        hash.update([0]);
        let sorted = sort(&Value::Object(params.clone()));
        hash.update(sorted.to_string());
        Self(URL_SAFE_NO_PAD.encode(hash.finalize()))
    }
}

impl StateSigner {
    pub fn new() -> Self {
        Self(random())
    }

    pub fn seal(&self, binding: &Binding, answers: &Answers) -> Result<String, BadState> {
        self.seal_until(now() + GOOD_FOR, binding, answers)
    }

    fn seal_until(
        &self,
        until: u64,
        binding: &Binding,
        answers: &Answers,
    ) -> Result<String, BadState> {
        let state = State {
            until,
            request: binding.0.clone(),
            answers: answers.clone(),
        };
        let state = serde_json::to_vec(&state).map_err(|_| BadState::TooLong)?;
        let mac = self.mac(&state).finalize().into_bytes();
        let sealed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(&state),
            URL_SAFE_NO_PAD.encode(mac)
        );
        if sealed.len() > LONGEST {
            return Err(BadState::TooLong);
        }
        Ok(sealed)
    }

    pub fn open(&self, sealed: &str, binding: &Binding) -> Result<Answers, BadState> {
        if sealed.len() > LONGEST {
            return Err(BadState::Forged);
        }
        let (state, mac) = sealed.split_once('.').ok_or(BadState::Forged)?;
        let decode = |text| URL_SAFE_NO_PAD.decode(text).map_err(|_| BadState::Forged);
        let (state, mac) = (decode(state)?, decode(mac)?);
        // Takes the same time whichever byte is wrong.
        self.mac(&state)
            .verify_slice(&mac)
            .map_err(|_| BadState::Forged)?;
        let state: State = serde_json::from_slice(&state).map_err(|_| BadState::Forged)?;
        if state.request != binding.0 {
            return Err(BadState::OtherRequest);
        }
        if state.until < now() {
            return Err(BadState::Expired);
        }
        Ok(state.answers)
    }

    fn mac(&self, state: &[u8]) -> Hmac<Sha256> {
        // The key has the size of a block, which is what this takes without a check.
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&self.0.into());
        mac.update(state);
        mac
    }
}

/// The same value with its keys in order: a client may write them in another one.
fn sort(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            let sorted = members.into_iter();
            Value::Object(
                sorted
                    .map(|(key, value)| (key.clone(), sort(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(sort).collect(),
        other => other.clone(),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn binding(params: Value) -> Binding {
        Binding::new("tools/call", &map(params))
    }

    #[test]
    fn a_state_comes_back_for_its_own_request_in_any_order_of_keys() {
        let signer = StateSigner::new();
        let answers = map(json!({"name": {"action": "accept", "content": {"name": "Ada"}}}));
        let made = binding(json!({"name": "t", "arguments": {"a": 1, "b": [{"c": 2, "d": 3}]}}));
        let again = binding(json!({"arguments": {"b": [{"d": 3, "c": 2}], "a": 1}, "name": "t"}));
        let state = signer.seal(&made, &answers).unwrap();
        assert_eq!(signer.open(&state, &again), Ok(answers));
    }

    #[test]
    fn a_state_is_refused_for_any_other_request() {
        let signer = StateSigner::new();
        let here = binding(json!({"name": "t"}));
        let state = signer.seal(&here, &Answers::new()).unwrap();
        for other in [
            binding(json!({"name": "u"})),
            binding(json!({"name": "t", "arguments": {}})),
            Binding::new("prompts/get", &map(json!({"name": "t"}))),
        ] {
            assert_eq!(signer.open(&state, &other), Err(BadState::OtherRequest));
        }
    }

    #[test]
    fn a_state_that_was_touched_forged_or_is_too_old_is_refused() {
        let signer = StateSigner::new();
        let here = binding(json!({"name": "t"}));
        let answers = map(json!({"k": {"action": "decline"}}));
        let state = signer.seal(&here, &answers).unwrap();
        for at in 0..state.len() {
            let mut touched = state.clone().into_bytes();
            touched[at] = if touched[at] == b'A' { b'B' } else { b'A' };
            let touched = String::from_utf8(touched).unwrap();
            assert_eq!(signer.open(&touched, &here), Err(BadState::Forged), "{at}");
        }
        let longer = format!("{state}-TAMPERED");
        for forged in ["", ".", "a.b", "é", &longer, &"A".repeat(LONGEST + 1)] {
            assert_eq!(
                signer.open(forged, &here),
                Err(BadState::Forged),
                "{forged:.20}"
            );
        }
        let foreign = StateSigner::new().seal(&here, &answers).unwrap();
        assert_eq!(signer.open(&foreign, &here), Err(BadState::Forged));
        let old = signer.seal_until(now() - 1, &here, &answers).unwrap();
        assert_eq!(signer.open(&old, &here), Err(BadState::Expired));
    }

    #[test]
    fn answers_that_are_too_long_are_not_sealed() {
        let answers = map(json!({"k": "x".repeat(LONGEST)}));
        let sealed = StateSigner::new().seal(&binding(json!({})), &answers);
        assert_eq!(sealed, Err(BadState::TooLong));
    }
}
