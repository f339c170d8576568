//! Addresses taken apart and put together, for `url.js`.

use url::{Url, quirks};

/// The parts of an address, in the order of `url.js`, after one was set; none if it is no address.
pub fn parts(
    text: String,
    base: Option<String>,
    part: Option<String>,
    value: Option<String>,
) -> Option<Vec<String>> {
    let base = base.map(|base| Url::parse(&base)).transpose().ok()?;
    let mut url = Url::options().base_url(base.as_ref()).parse(&text).ok()?;
    if let (Some(part), Some(value)) = (part, value) {
        // A part that cannot be set so stays as it is, like in a browser.
        match part.as_str() {
            "protocol" => drop(quirks::set_protocol(&mut url, &value)),
            "username" => drop(quirks::set_username(&mut url, &value)),
            "password" => drop(quirks::set_password(&mut url, &value)),
            "host" => drop(quirks::set_host(&mut url, &value)),
            "hostname" => drop(quirks::set_hostname(&mut url, &value)),
            "port" => drop(quirks::set_port(&mut url, &value)),
            "pathname" => quirks::set_pathname(&mut url, &value),
            "search" => quirks::set_search(&mut url, &value),
            "hash" => quirks::set_hash(&mut url, &value),
            _ => {}
        }
    }
    Some(vec![
        quirks::href(&url).to_owned(),
        quirks::origin(&url),
        quirks::protocol(&url).to_owned(),
        quirks::username(&url).to_owned(),
        quirks::password(&url).to_owned(),
        quirks::host(&url).to_owned(),
        quirks::hostname(&url).to_owned(),
        quirks::port(&url).to_owned(),
        quirks::pathname(&url).to_owned(),
        quirks::search(&url).to_owned(),
        quirks::hash(&url).to_owned(),
    ])
}
