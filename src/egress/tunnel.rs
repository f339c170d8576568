//! A tunnel that CONNECT asked for: bytes both ways, once the TLS in it names the same host.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client_hello::{self, ClientHello};
use super::report::{Count, Reason};
use crate::request::{Host, Target};

/// How much may go through, and where it is counted.
pub struct Meter<'a> {
    pub sent: &'a Count,
    pub received: &'a Count,
    pub most: u64,
}

/// Carries bytes until both sides have ended. An error is a verdict on the client's
/// first message, which the server then never sees.
pub async fn carry(
    client: impl AsyncRead + AsyncWrite,
    server: TcpStream,
    target: &Target,
    meter: Meter<'_>,
) -> Result<(), Reason> {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        // SECURITY: however long that takes. One that could be waited out would be no check.
        let first = first_message(&mut from_client, target).await?;
        let fits = meter.sent.add(first.len(), meter.most);
        if !fits || to_server.write_all(&first).await.is_err() {
            return Ok(Way::Broken);
        }
        let pumped = pump(&mut from_client, &mut to_server, meter.sent, meter.most).await;
        Ok(pumped.map_or(Way::Broken, |()| Way::Ended))
    };
    // Some servers speak first; what they say needs no check.
    let down = pump(&mut from_server, &mut to_client, meter.received, meter.most);
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    tokio::select! {
        verdict = &mut up => {
            if let Way::Ended = verdict? {
                let _ = down.await;
            }
            Ok(())
        }
        // What the client still says to a server that has ended is lost anyway.
        _ = &mut down => Ok(()),
    }
}

/// How one direction came to its end.
enum Way {
    Ended,
    Broken,
}

/// Reads until the host that the client means can be told.
///
/// At 443 that must be TLS. At other ports, which were granted by number, anything may
/// be spoken, but TLS that names another host is refused there too.
async fn first_message(
    client: &mut (impl AsyncRead + Unpin),
    target: &Target,
) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    loop {
        match client.read_buf(&mut bytes).await {
            Ok(read) if read > 0 => {}
            _ => return Ok(bytes),
        }
        return match (client_hello::read(&bytes), &target.host) {
            (ClientHello::Unfinished, _) => continue,
            (ClientHello::NotTls, _) if target.port == 443 || bytes[0] == 22 => Err(Reason::NotTls),
            (ClientHello::NotTls, _) => Ok(bytes),
            (ClientHello::Name(Some(name)), Host::Name(host))
                if name.eq_ignore_ascii_case(host.as_str()) =>
            {
                Ok(bytes)
            }
            (ClientHello::Name(None), Host::Address(_)) => Ok(bytes),
            (ClientHello::Name(_), _) => Err(Reason::OtherTlsName),
        };
    }
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &Count,
    most: u64,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        if !count.add(read, most) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        to.write_all(&buffer[..read]).await?;
    }
}
