//! placeholder until the listeners land
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::TcpStream;

pub const PORT: u16 = 3128;

pub trait Service: Send + Sync + 'static {
    fn attend(self: Arc<Self>, stream: TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    fn exhausted(&self) {}
}

pub struct Serving {
    socket: OwnedFd,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    pub fn start(listener: OwnedFd, service: Arc<dyn Service>) -> io::Result<Self> {
        let socket = listener.try_clone()?;
        let listener = tokio::net::TcpListener::from_std(std::net::TcpListener::from(listener))?;
        let task = tokio::spawn(async move {
            crate::egress::attend_each(&listener, |stream| service.clone().attend(stream)).await;
            service.exhausted();
        });
        Ok(Self { socket, task })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.task.abort();
    }
}
