//! Connections to public addresses only. The client connects to the very addresses that were
//! checked, so a name that resolves to another one meanwhile gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Returns whether an address is one of the public internet: not of this machine, a private
/// network, a link, a provider's own network, a group, or a range for other uses.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    // This network; carrier-grade NAT; benchmarks; reserved, broadcast among them; protocol
    // assignments; the former relays of 6to4.
    let is_special = matches!(
        (first, second, third),
        (0 | 240..=255, ..) | (100, 64..=127, _) | (198, 18 | 19, _) | (192, 0, 0) | (192, 88, 99)
    );
    !(is_special
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, .., high, low] = address.segments();
    let embedded = |high: u16, low: u16| {
        is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
    };
    match (first, second) {
        // ::ffff:a.b.c.d is an IPv4 address; the rest of ::/16 is for this machine, or obsolete.
        (0, _) => address.to_ipv4_mapped().is_some_and(is_public_v4),
        // NAT64 and 6to4 reach an IPv4 address.
        (0x64, 0xff9b) => address.segments()[2..6] == [0; 4] && embedded(high, low),
        (0x2002, high) => embedded(high, third),
        // Teredo and other protocols; documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x3fff, 0..=0xfff) => false,
        // Global unicast; local and group addresses are elsewhere.
        (0x2000..=0x3fff, _) => true,
        _ => false,
    }
}

/// A resolver that knows public addresses only. It is not asked for hosts that are addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().find(|address| !is_public(address.ip())) {
                // One is enough: a public name has no private addresses.
                Some(private) => Err(format!(
                    "{} has the address {}, which is not public",
                    name.as_str(),
                    private.ip()
                )
                .into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_told_from_public_ones_in_every_form() {
        for private in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:c0a8:101::1",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:4860:4860::8888",
            "2002:808:808::1",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn a_name_of_this_machine_has_no_public_address() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolved = runtime.block_on(PublicOnly.resolve("localhost".parse().unwrap()));
        let error = resolved.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("localhost has the address"), "{error}");
    }
}
