//! The fuzz targets `client_hello` and `egress`: what a program says to a host, and to the proxy.

use std::io;
use std::sync::Arc;

use rustls::server::Acceptor;

use super::client_hello::{self, ClientHello};
use super::grant::Egress;
use super::proxy::EgressProxy;
use crate::loopback::fuzzing::exchange;
use crate::request::Network;

pub fn client_hello(bytes: &[u8]) {
    let whole = client_hello::read(bytes);
    for cut in 0..bytes.len() {
        // Who has decided does not decide otherwise when more has come.
        let before = client_hello::read(&bytes[..cut]);
        assert!(
            before == ClientHello::Unfinished || before == whole,
            "{before:?} after {cut} bytes, then {whole:?}"
        );
    }
    // SECURITY: a server finds the name that we have found, or none of us finds one.
    if let Some(name) = as_servers_read_it(bytes) {
        let same = match &whole {
            ClientHello::Name(Some(ours)) => ours.eq_ignore_ascii_case(&name),
            ClientHello::Name(None) => false,
            ClientHello::NotTls | ClientHello::Unfinished => true,
        };
        assert!(same, "{whole:?} is {name} to a server");
    }
}

fn as_servers_read_it(bytes: &[u8]) -> Option<String> {
    let mut acceptor = Acceptor::default();
    let mut rest = io::Cursor::new(bytes);
    loop {
        let read = acceptor.read_tls(&mut rest).ok()?;
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                return accepted.client_hello().server_name().map(str::to_owned);
            }
            Ok(None) if read > 0 => {}
            _ => return None,
        }
    }
}

pub fn egress(bytes: &[u8]) {
    // Nothing is dialled: these addresses are not public.
    let network = Network::parse("10.0.0.1,10.0.0.1:8443,169.254.169.254,[fe80::1]");
    let egress = Egress::new(network.expect("hosts")).expect("a grant");
    let proxy = Arc::new(EgressProxy::new(egress, None, None));
    let answer = exchange(bytes, |stream| proxy.clone().serve(stream));
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1."),
        "{}",
        answer.escape_ascii()
    );
    let report = proxy.report();
    assert!(report.reached.is_empty(), "{report:?}");
    assert_eq!(
        (report.bytes_sent, report.bytes_received),
        (0, 0),
        "{report:?}"
    );
}
