//! Where webhooks may go. An endpoint's address is a shop's own text: it must not be a way into the network that this server
//! stands in.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::config::{Config, Switch};

/// Which addresses are gone to; as a resolver it finds no others, so that a name cannot mean one thing when it is checked and
/// another when it is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Whether plain http and private addresses are.
    private: bool,
}

impl Addresses {
    /// The settings' word.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            private: config.webhook_private == Switch::On,
        }
    }

    /// An endpoint's address, if it may be gone to as far as its text tells.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn check(self, text: &str) -> Result<Url, &'static str> {
        let url = Url::parse(text).map_err(|_| "the address is none")?;
        let secure = url.scheme() == "https" || (self.private && url.scheme() == "http");
        if !secure {
            return Err("the address must begin with https://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address must have no user and no password");
        }
        let host = url.host_str().unwrap_or_default();
        // A host in numbers is asked of no resolver.
        let number = host.trim_start_matches('[').trim_end_matches(']').parse();
        if number.is_ok_and(|ip: IpAddr| !self.takes(ip)) {
            return Err("the address is a private one");
        }
        Ok(url)
    }

    fn takes(self, ip: IpAddr) -> bool {
        self.private || is_public(ip)
    }
}

impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = *self;
        Box::pin(async move {
            // The port is the address's own: this one is replaced by it.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let taken: Vec<SocketAddr> = found.filter(|at| addresses.takes(at.ip())).collect();
            if taken.is_empty() {
                let why = io::Error::other("the name has no public address");
                return Err(why.into());
            }
            let taken: Addrs = Box::new(taken.into_iter());
            Ok(taken)
        })
    }
}

/// Whether an address is one of the open network. What is not known to be is not (IANA's special-purpose registries).
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = match (a, b, c) {
        (0 | 10 | 127, _, _) | (169, 254, _) | (192, 168, _) | (192, 0, 0 | 2) => true,
        (100, 64..=127, _) | (172, 16..=31, _) | (198, 18 | 19, _) => true,
        (192, 88, 99) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast.
        _ => a >= 224,
    };
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Translated: it is where its IPv4 address is.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo, benchmarking, ORCHID and the like; documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Of all others only the global unicast range is in use.
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Addresses = Addresses { private: false };

    #[test]
    fn no_webhook_goes_to_an_address_within() {
        for within in [
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://10.1.2.3:8443/x",
            "https://172.31.0.1/",
            "https://192.168.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://0.0.0.0/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://[::1]/",
            "https://[::]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[2001:db8::1]/",
            "https://[3fff:1::1]/",
            "https://[::ffff:7f00:1]/",
            "https://[::127.0.0.1]/",
            "https://127.1/",
            "https://127.0.0.1./",
            "https://017700000001/",
            "http://shop.example/",
            "ftp://shop.example/",
            "https://user:word@shop.example/",
            "shop.example",
        ] {
            assert!(OPEN.check(within).is_err(), "{within}");
        }
        for open in [
            "https://shop.example/hook?a=b",
            "https://93.184.216.34/",
            "https://172.32.0.1/",
            "https://[2606:2800:220:1::1]/",
        ] {
            assert!(OPEN.check(open).is_ok(), "{open}");
        }
        let private = Addresses { private: true };
        assert!(private.check("http://127.0.0.1:9/").is_ok());
    }

    #[tokio::test]
    async fn a_name_is_found_at_public_addresses_only() {
        let found = |addresses: Addresses| async move {
            let name: Name = "localhost".parse().expect("a name");
            addresses.resolve(name).await.is_ok()
        };
        assert!(!found(OPEN).await);
        assert!(found(Addresses { private: true }).await);
    }
}
