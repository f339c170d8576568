//! The command `mcp`: sends what was typed to the host, and prints what comes back.
//!
//! It knows no server and no tool, and reads no JSON: all of that is done by who answers (`src/upstream/bridge/command.rs`). It may do what
//! the program that starts it may do, and nothing more.

use std::env;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;

/// Where the host answers: `loopback::PORT` there.
const PLACE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);
/// The exit status when nobody answers.
const UNAVAILABLE: u8 = 4;

fn main() -> ExitCode {
    let words: Vec<String> = env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match run(&words) {
        Ok(status) => ExitCode::from(status),
        // Who does not want to read on has got what it wants.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mcp: {error}");
            ExitCode::from(UNAVAILABLE)
        }
    }
}

fn run(words: &[String]) -> io::Result<u8> {
    let mut input = Vec::new();
    if words.iter().skip(2).any(|word| word == "-") {
        io::stdin().read_to_end(&mut input)?;
    }
    let answer = ask(&question(words, &String::from_utf8_lossy(&input)))?;
    let body = body(&answer).ok_or_else(|| unreadable("the host did not answer"))?;
    show(body)
}

/// What is asked, as JSON.
fn question(words: &[String], input: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let folder = env::temp_dir();
    let files = folder.join(format!("mcp-{}-", std::process::id()));
    format!(
        r#"{{"ask":"command","words":[{}],"input":{},"files":{}}}"#,
        words.join(","),
        quoted(input),
        quoted(&files.to_string_lossy()),
    )
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if letter < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn ask(question: &str) -> io::Result<Vec<u8>> {
    let connected = TcpStream::connect(PLACE);
    let mut line = connected.map_err(|_| io::Error::other("this run was given no servers"))?;
    let head = format!(
        "POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n",
        question.len()
    );
    line.write_all(head.as_bytes())?;
    line.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    line.read_to_end(&mut answer)?;
    Ok(answer)
}

/// What follows the head of an answer.
fn body(answer: &[u8]) -> Option<&[u8]> {
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n")?;
    Some(&answer[end + 4..])
}

/// Prints an answer and saves its files: numbers, a line for each file, and all the bytes.
fn show(body: &[u8]) -> io::Result<u8> {
    let mut rest = body;
    let numbers = next_line(&mut rest)?;
    let numbers: Vec<usize> = numbers
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let [status, out, err, files] = numbers[..] else {
        return Err(unreadable(&String::from_utf8_lossy(body)));
    };
    let mut listed = Vec::new();
    for _ in 0..files {
        let line = next_line(&mut rest)?;
        let (size, path) = line.split_once(' ').ok_or_else(|| unreadable(line))?;
        listed.push((size.parse().map_err(|_| unreadable(line))?, path));
    }
    let (out, err) = (take(&mut rest, out)?, take(&mut rest, err)?);
    for (size, path) in listed {
        let bytes = take(&mut rest, size)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(bytes)?;
    }
    io::stderr().write_all(err)?;
    io::stdout().write_all(out)?;
    io::stdout().flush()?;
    Ok(u8::try_from(status).unwrap_or(UNAVAILABLE))
}

fn next_line<'a>(rest: &mut &'a [u8]) -> io::Result<&'a str> {
    let end = rest.iter().position(|it| *it == b'\n');
    let end = end.ok_or_else(|| unreadable("no line"))?;
    let line = take(rest, end + 1)?;
    std::str::from_utf8(&line[..end]).map_err(|_| unreadable("no text"))
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> io::Result<&'a [u8]> {
    let (taken, left) = rest
        .split_at_checked(size)
        .ok_or_else(|| unreadable("the answer is too short"))?;
    *rest = left;
    Ok(taken)
}

fn unreadable(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_json_strings_whatever_is_in_them() {
        assert_eq!(quoted("a\"b\\c\n\u{1}é"), r#""a\"b\\c\u000a\u0001é""#);
    }

    #[test]
    fn an_answer_is_taken_apart_and_a_short_one_is_an_error() {
        assert_eq!(show(b"3 0 0 0\n").ok(), Some(3));
        assert!(show(b"0 5 0 0\nab").is_err() && show(b"").is_err());
        assert!(show(b"{\"error\":1}\n").is_err());
    }
}
