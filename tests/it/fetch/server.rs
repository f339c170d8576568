//! A registry of the test's own, on loopback: files, ranges, and lines that break.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Default)]
pub struct State {
    pub files: BTreeMap<String, Vec<u8>>,
    /// No file is sent beyond this byte; then the line breaks.
    pub cut: Option<usize>,
    /// The line stays open there instead.
    pub stalls: bool,
    /// Files whose names end so are sent once this is empty again.
    pub held: String,
    /// Whether a client may go on in the middle.
    pub ranges: bool,
    /// What was asked for: the path, and the range if there was one.
    pub asked: Vec<(String, Option<String>)>,
    pub bytes_sent: usize,
}

pub struct Server {
    pub address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub fn start(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State {
            files: files.into_iter().collect(),
            ranges: true,
            ..State::default()
        }));
        let shared = state.clone();
        // Ends with the process: nothing else would end it that is not a client.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                // A client that has gone is no fault of ours.
                thread::spawn(move || drop(answer(stream, &shared)));
            }
        });
        Self { address, state }
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().expect("no thread panics with it"))
    }

    /// How often something whose path ends so was asked for.
    pub fn count(&self, ending: &str) -> usize {
        let ends = |asked: &&(String, Option<String>)| asked.0.ends_with(ending);
        self.with(|state| state.asked.iter().filter(ends).count())
    }
}

fn answer(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    // A proxy is asked for a whole address, of which the path is enough for us.
    let asked = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let path = match asked.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]).to_owned(),
        None => asked.clone(),
    };
    let mut range = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        range = line.strip_prefix("range: ").map(str::to_owned).or(range);
    }
    let is_held = |state: &State| !state.held.is_empty() && path.ends_with(&state.held);
    state
        .lock()
        .expect("no thread panics with it")
        .asked
        .push((asked, range.clone()));
    while is_held(&state.lock().expect("no thread panics with it")) {
        thread::sleep(Duration::from_millis(5));
    }
    let (file, cut, ranges) = {
        let state = state.lock().expect("no thread panics with it");
        (state.files.get(&path).cloned(), state.cut, state.ranges)
    };
    let mut stream = stream;
    let Some(file) = file else {
        return stream
            .write_all(b"HTTP/1.1 404 None\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    };
    let start = range.filter(|_| ranges).and_then(|range| {
        let start = range.strip_prefix("bytes=")?.strip_suffix('-')?;
        start.parse::<usize>().ok()
    });
    let from = start.unwrap_or(0);
    let status = match start {
        Some(start) => format!(
            "206 Partial Content\r\ncontent-range: bytes {start}-{}/{}",
            file.len() - 1,
            file.len()
        ),
        None => "200 OK".to_owned(),
    };
    let length = file.len() - from;
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let end = cut.map_or(file.len(), |cut| cut.clamp(from, file.len()));
    stream.write_all(&file[from..end])?;
    let stalls = {
        let mut state = state.lock().expect("no thread panics with it");
        state.bytes_sent += end - from;
        state.stalls
    };
    if stalls {
        // Until the client has had enough.
        let _ = stream.read(&mut [0]);
    }
    Ok(())
}
