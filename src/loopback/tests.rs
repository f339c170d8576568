use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::accept::{Accept, FIRST_PAUSE, LONGEST_PAUSE, accept_each};
use super::http::http1_within;
use super::*;

const LONG: Duration = Duration::from_secs(3600);

/// Sends back the one byte that a connection brings, and counts.
#[derive(Default)]
struct Echo {
    now: AtomicUsize,
    most: AtomicUsize,
    exhausted: Notify,
}

impl Service for Echo {
    fn attend(
        self: Arc<Self>,
        mut connection: Connection,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            if let Ok(byte) = connection.read_u8().await {
                connection.write_u8(byte).await.expect("it is open");
            }
            self.now.fetch_sub(1, Ordering::Relaxed);
        })
    }

    fn exhausted(&self) {
        self.exhausted.notify_one();
    }
}

fn serve(bounds: Bounds, service: Arc<dyn Service>) -> (Serving, SocketAddr) {
    let listener = StdListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a flag");
    let address = listener.local_addr().expect("an address");
    let serving = Serving::within(bounds, listener.into(), service).expect("a runtime");
    (serving, address)
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("somebody listens")
}

#[tokio::test]
async fn more_connections_than_may_be_at_a_time_wait_for_one_to_end() {
    let bounds = Bounds {
        at_a_time: 3,
        in_all: 100,
        idle: LONG,
    };
    let echo = Arc::new(Echo::default());
    let (_serving, address) = serve(bounds, echo.clone());
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(connect(address).await);
    }
    for mut client in clients {
        client.write_u8(7).await.expect("it is open");
        assert_eq!(client.read_u8().await.expect("an answer"), 7);
    }
    assert_eq!(echo.most.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn after_the_last_connection_nothing_listens_and_the_open_ones_go_on() {
    let bounds = Bounds {
        at_a_time: 10,
        in_all: 3,
        idle: LONG,
    };
    let echo = Arc::new(Echo::default());
    let (_serving, address) = serve(bounds, echo.clone());
    let mut open = connect(address).await;
    let _others = [connect(address).await, connect(address).await];
    echo.exhausted.notified().await;
    let refused = TcpStream::connect(address).await.expect_err("none is left");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    open.write_u8(7).await.expect("it is open");
    assert_eq!(open.read_u8().await.expect("an answer"), 7);
}

#[tokio::test]
async fn what_is_dropped_listens_no_more_and_ends_its_connections() {
    let (serving, address) = serve(BOUNDS, Arc::new(Echo::default()));
    let mut open = connect(address).await;
    drop(serving);
    let refused = TcpStream::connect(address).await.expect_err("it is gone");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(matches!(open.read(&mut [0]).await, Ok(0) | Err(_)));
}

/// Has no file descriptor for a while, then one connection, then none for ever.
struct Scarce {
    failures: usize,
    tried: Arc<Mutex<Vec<Instant>>>,
    stream: Mutex<Option<TcpStream>>,
}

impl Accept for Scarce {
    async fn accept(&self) -> io::Result<TcpStream> {
        let tried = {
            let mut tried = self.tried.lock().unwrap();
            tried.push(Instant::now());
            tried.len()
        };
        if tried <= self.failures {
            return Err(rustix::io::Errno::MFILE.into());
        }
        let stream = self.stream.lock().unwrap().take();
        Ok(stream.expect("one connection is all there may be"))
    }

    fn close(&self) {}
}

#[tokio::test]
async fn failures_to_accept_are_tried_again_after_longer_and_longer_pauses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = connect(listener.local_addr().expect("an address")).await;
    let (stream, _) = listener.accept().await.expect("a connection");
    drop(client);
    let tried = Arc::default();
    let scarce = Scarce {
        failures: 5,
        tried: Arc::clone(&tried),
        stream: Mutex::new(Some(stream)),
    };
    let bounds = Bounds {
        in_all: 1,
        ..BOUNDS
    };
    accept_each(scarce, Arc::new(Echo::default()), bounds).await;
    let tried = tried.lock().unwrap();
    assert_eq!(tried.len(), 6);
    let mut pause = FIRST_PAUSE;
    for pair in tried.windows(2) {
        assert!(pair[1] - pair[0] >= pause, "{tried:?}");
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}

/// What is answered to a request head, whose client then waits.
async fn answer_to(head_time: Duration, head: &[u8]) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let answer = |_: Request<_>| async { Ok::<_, io::Error>(Response::new(full("answered"))) };
    let serving = http1_within(head_time);
    let serving = serving.serve_connection(TokioIo::new(server), service_fn(answer));
    let asking = async {
        client.write_all(head).await.expect("it is open");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("it ends");
        answer
    };
    tokio::join!(asking, serving).0
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_by_its_time_and_by_its_size() {
    let soon = Duration::from_millis(20);
    let whole = b"GET / HTTP/1.0\r\n\r\n";
    assert!(answer_to(LONG, whole).await.ends_with(b"answered"));
    assert_eq!(answer_to(soon, b"GET / HTTP/1.1\r\nA: b\r\n").await, b"");
    let large = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'b'; HEAD_BYTES]].concat();
    let many = [
        &b"GET / HTTP/1.1\r\n"[..],
        &b"A: b\r\n".repeat(HEAD_LINES + 1),
    ]
    .concat();
    for head in [large, [&many[..], b"\r\n"].concat()] {
        let answer = answer_to(LONG, &head).await;
        assert!(
            answer.starts_with(b"HTTP/1.1 431"),
            "{}",
            answer.escape_ascii()
        );
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_and_one_that_moves_stays() {
    let soon = Duration::from_millis(20);
    let (_client, server) = tokio::io::duplex(8);
    let mut silent = Idle::new(server, soon);
    let error = silent.read_u8().await.expect_err("nothing came");
    assert_eq!(error.kind(), ErrorKind::TimedOut);

    // A reader that reads nothing is silence too.
    let (_client, server) = tokio::io::duplex(8);
    let mut stuck = Idle::new(server, soon);
    let error = stuck.write_all(&[0; 9]).await.expect_err("nobody reads");
    assert_eq!(error.kind(), ErrorKind::TimedOut);

    let (mut client, server) = tokio::io::duplex(8);
    let mut busy = Idle::new(server, LONG);
    let first = busy.deadline();
    client.write_u8(7).await.expect("it is open");
    busy.read_u8().await.expect("a byte");
    let second = busy.deadline();
    busy.write_u8(7).await.expect("it is open");
    assert!(first < second && second < busy.deadline());
}
