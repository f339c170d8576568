//! For the fuzz targets: one connection that brings some bytes, ends, and listens.

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
}

/// Waits for `work`, but not for ever.
pub fn wait_for<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let ended = tokio::time::timeout(Duration::from_secs(60), work).await;
            ended.expect("it ends")
        })
    })
}

/// What `serve` answers to these bytes.
pub fn exchange<F: Future>(bytes: &[u8], serve: impl FnOnce(DuplexStream) -> F) -> Vec<u8> {
    wait_for(async {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (mut from, mut to) = tokio::io::split(client);
        let ask = async {
            // Whoever has heard enough hangs up.
            let _ = to.write_all(bytes).await;
            // An answer that is not begun is dropped when its client ends. Nothing here waits for anything, so turns are enough.
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            let _ = to.shutdown().await;
        };
        let hear = async {
            let mut answer = Vec::new();
            let _ = from.read_to_end(&mut answer).await;
            answer
        };
        tokio::join!(ask, serve(server), hear).2
    })
}
