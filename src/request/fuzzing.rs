//! The fuzz target `host`: what is granted, and what is asked for.

use reqwest::Url;

use super::{Host, Network, Target};

pub fn host(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let (grant, asked) = text.split_once('\n').unwrap_or((text, text));
    let network = Network::parse(grant).unwrap_or_default();
    let Ok(target) = Target::parse(asked, Some(80)) else {
        return;
    };
    let again = Target::parse(&target.to_string(), None);
    assert_eq!(again.as_ref(), Ok(&target), "{asked:?}");
    if network.allows(&target) {
        assert_ne!(network, Network::None);
        // What is allowed is allowed by itself, and not beyond what the grant covers.
        let own = Network::parse(&target.to_string()).expect("a host can be granted");
        assert!(
            own.allows(&target) && own.within(&network).is_ok(),
            "{text:?}"
        );
    }
    // SECURITY: another reader takes it for the same host, or refuses it.
    let Some(url) = Url::parse(&format!("http://{asked}/")).ok() else {
        return;
    };
    let other = url.host_str().unwrap_or_default();
    match &target.host {
        Host::Name(name) => assert_eq!(other.trim_end_matches('.'), name.as_str(), "{asked:?}"),
        Host::Address(_) => {
            let other = Host::parse(other);
            assert_eq!(other.as_ref(), Ok(&target.host), "{asked:?}");
        }
    }
    assert_eq!(url.port_or_known_default(), Some(target.port), "{asked:?}");
}
