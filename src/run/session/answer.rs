//! What is said over a session's channel.
//!
//! A call is `NUMBER BYTES INPUT` on a line and as many bytes of code; `INPUT` is 1 if there is something to read. The answer is
//! `done NUMBER CODE BYTES` on a line and as many bytes of text. Call 0 is code of ours, which is not answered. With 2 for `INPUT` it is no
//! call: the worker is asked for a copy of itself, which answers with its process number.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Call;
use crate::cell::Channel;

/// The first line of an answer, at most.
const LONGEST_LINE: usize = 64;
/// The value of a call, at most. Our workers cut it far before.
const LONGEST_VALUE: usize = 1 << 17;
/// Answers to calls that have ended: a forged one leaves the true one behind.
const MOST_STALE: usize = 1000;

/// Our side of a channel.
pub struct Line {
    channel: Channel,
    /// What came and is no whole answer yet.
    said: Vec<u8>,
    /// Of the newest call.
    pub number: u64,
    /// Whether all of that call has been sent.
    pub is_sent: bool,
}

/// What the worker says of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub number: u64,
    pub code: i32,
    pub value: String,
}

/// What no worker of ours says.
#[derive(Debug, PartialEq, Eq)]
pub struct Garbled;

impl Line {
    pub fn new(channel: Channel) -> Self {
        Self {
            channel,
            said: Vec::new(),
            number: 0,
            is_sent: false,
        }
    }

    /// The next call as it is sent. What was said before it is nothing that anybody waits for.
    pub fn next_call(&mut self, call: &Call<'_>, has_input: bool) -> Vec<u8> {
        let Call { prelude, code, .. } = call;
        self.number = call.number;
        self.forget();
        let mut message = Vec::new();
        if !prelude.is_empty() {
            message.extend(format!("0 {} 0\n{prelude}", prelude.len()).into_bytes());
        }
        let input = u8::from(has_input);
        message.extend(format!("{} {} {input}\n", self.number, code.len()).into_bytes());
        message.extend_from_slice(code);
        message
    }

    /// The wish for a copy of the worker as it is sent. It has the number of the call before.
    pub fn copy_wish(&mut self) -> Vec<u8> {
        self.forget();
        format!("{} 0 2\n", self.number).into_bytes()
    }

    fn forget(&mut self) {
        self.is_sent = false;
        self.said.clear();
        let mut buffer = [0; 4096];
        // A FIFO holds sixteen of these; what a program writes meanwhile is read as an answer.
        for _ in 0..16 {
            if !matches!(
                rustix::io::read(&self.channel.answers, &mut buffer),
                Ok(1..)
            ) {
                break;
            }
        }
    }

    /// Sends a call and waits for its answer.
    pub async fn exchange(&mut self, message: &[u8]) -> Result<Answer, Garbled> {
        let sent = self.channel.calls.write_all(message).await;
        sent.map_err(|_| Garbled)?;
        self.is_sent = true;
        self.answer().await
    }

    /// Waits for the answer to the newest call. Cancel safe.
    pub async fn answer(&mut self) -> Result<Answer, Garbled> {
        for _ in 0..MOST_STALE {
            let answer = loop {
                match Answer::take(&mut self.said)? {
                    Some(answer) => break answer,
                    None => self.said.reserve(4096),
                }
                match self.channel.answers.read_buf(&mut self.said).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return Err(Garbled),
                }
            };
            match answer.number {
                number if number == self.number => return Ok(answer),
                number if number > self.number => return Err(Garbled),
                _ => {}
            }
        }
        Err(Garbled)
    }
}

impl Answer {
    /// Takes the first answer out of what was said, if it is whole.
    fn take(said: &mut Vec<u8>) -> Result<Option<Self>, Garbled> {
        let Some(end) = said.iter().take(LONGEST_LINE).position(|it| *it == b'\n') else {
            return match said.len() < LONGEST_LINE {
                true => Ok(None),
                false => Err(Garbled),
            };
        };
        let line = std::str::from_utf8(&said[..end]).map_err(|_| Garbled)?;
        let words: Vec<&str> = line.split(' ').collect();
        let ["done", number, code, bytes] = words[..] else {
            return Err(Garbled);
        };
        let number = number.parse().map_err(|_| Garbled)?;
        let code: u8 = code.parse().map_err(|_| Garbled)?;
        let bytes: usize = bytes.parse().map_err(|_| Garbled)?;
        if bytes > LONGEST_VALUE {
            return Err(Garbled);
        }
        let whole = end + 1 + bytes;
        if said.len() < whole {
            return Ok(None);
        }
        let value = String::from_utf8_lossy(&said[end + 1..whole]).into_owned();
        said.drain(..whole);
        Ok(Some(Self {
            number,
            code: code.into(),
            value,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(said: &str) -> (Result<Option<Answer>, Garbled>, String) {
        let mut bytes = said.as_bytes().to_vec();
        let answer = Answer::take(&mut bytes);
        (answer, String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn an_answer_is_taken_when_it_is_whole() {
        let answer = |number, code, value: &str| {
            let value = value.to_owned();
            Ok(Some(Answer {
                number,
                code,
                value,
            }))
        };
        assert_eq!(taken("done 3 0 0\n"), (answer(3, 0, ""), String::new()));
        let rest = "done".to_owned();
        assert_eq!(taken("done 4 255 2\nhidone"), (answer(4, 255, "hi"), rest));
        for part in ["", "done", "done 3 0 2", "done 3 0 2\nh"] {
            assert_eq!(taken(part), (Ok(None), part.to_owned()));
        }
    }

    #[test]
    fn what_no_worker_says_is_garbled_and_nothing_is_read_without_end() {
        let endless = "done ".repeat(100);
        for said in [
            "\n",
            "done 3 0\n",
            "done 3 0 0 0\n",
            "done -3 0 0\n",
            "done 3 256 0\n",
            "done 3 -1 0\n",
            "done 3 0 131073\n",
            "done 3 0 99999999999999999999999\n",
            "DONE 3 0 0\n",
            "done  3 0 0\n",
            &endless,
        ] {
            assert_eq!(taken(said).0, Err(Garbled), "{said:?}");
        }
        assert_eq!(Answer::take(&mut vec![0xff, b'\n']), Err(Garbled));
    }
}
