//! Which addresses may be dialled, whatever name led to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Public,
    /// Of this host, or of a network that it is in: only for hosts that the owner's
    /// configuration names.
    Private,
    /// Of a cloud's machinery, of one link, of many at once, or of nobody.
    Never,
}

/// Addresses at which clouds hand out credentials to whoever asks from the machine.
const METADATA: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

impl Reach {
    pub fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if METADATA.contains(&address) {
            return Self::Never;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Reach::Never,
        // What carries IPv6 in IPv4: nobody's, these days.
        [192, 88, 99, _] => Reach::Never,
        [10, ..] | [127, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reach::Private,
        // Carriers' networks, protocol assignments, benchmarks.
        [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => Reach::Private,
        _ => Reach::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    let inside = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        match Reach::of(Ipv4Addr::new(a, b, c, d).into()) {
            Reach::Public => Reach::Public,
            // A gateway's idea of a private address is not what an owner has granted.
            _ => Reach::Never,
        }
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        // NAT64 and 6to4 are other ways to write an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inside(high, low),
        [0x2002, high, low, ..] => inside(high, low),
        // The rest of the lowest block, Teredo and discarded packets.
        [0x0000..=0x00ff, ..] | [0x2001, 0, ..] | [0x0100, 0, 0, 0, ..] => Reach::Never,
        [0xfc00..=0xfdff, ..] => Reach::Private,
        [0xfe80..=0xffff, ..] => Reach::Never,
        // Only these are given out to anybody.
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Never,
    }
}

/// Whether an address is one of this host's own: what it serves to the world may
/// trust its neighbours more. Sends nothing.
pub fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // The kernel answers a host's own address with that address.
    let local = || {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((address, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    local() == Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public_in_whatever_way_they_are_written() {
        let table = [
            (
                Reach::Public,
                "1.1.1.1 8.8.8.8 93.184.216.34 203.0.113.80 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 \
                 192.167.0.1 192.169.0.1 11.0.0.1 126.255.255.255 128.0.0.1 223.255.255.255 169.253.0.1 169.255.0.1 \
                 2606:4700:4700::1111 2001:4860:4860::8888 2a00::1 3fff::1 ::ffff:1.1.1.1 64:ff9b::101:101 2002:101:101::1",
            ),
            (
                Reach::Private,
                "127.0.0.1 127.255.255.254 127.1.2.3 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 \
                 192.168.127.1 100.64.0.1 100.127.255.255 192.0.0.1 198.18.0.1 198.19.255.255 ::1 fc00::1 fd00::1 \
                 fdff:ffff::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:192.168.1.1 ::ffff:100.64.0.1",
            ),
            (
                Reach::Never,
                "0.0.0.0 0.1.2.3 169.254.169.254 169.254.0.1 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 \
                 192.88.99.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::2 ::127.0.0.1 ::7f00:1 \
                 ::ffff:0:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1 \
                 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::a00:1 64:ff9b:1::1 2002:7f00:1::1 2002:a9fe:a9fe::1 \
                 2002:c0a8:1::1 2001::1 2001:0:5ef5:79fd::1 100::1 fd00:ec2::254 4000::1 e000::1",
            ),
        ];
        for (reach, addresses) in table {
            for text in addresses.split_whitespace() {
                let address = text.parse().expect(text);
                assert_eq!(Reach::of(address), reach, "{text}");
            }
        }
    }

    #[test]
    fn the_loopback_is_our_own_and_a_public_resolver_is_not() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(1, 1, 1, 1).into()));
    }
}
