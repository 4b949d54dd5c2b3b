//! Shops that sell through this checkout: what their keys are, and where their shoppers are led back to.

use std::fmt::Write as _;

use payment::id::OrderId;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use crate::gateway::secret::Secret;
use crate::random;

/// What every key begins with, so that one that was left lying about is recognised.
const KEY_PREFIX: &str = "jari_";
/// The longest address that a shopper is led back to.
const LONGEST_URL: usize = 2_000;

/// A new key.
#[derive(Debug, Clone)]
pub struct MadeKey {
    /// The part that is no secret.
    pub handle: String,
    /// The whole key, to be shown once.
    pub key: Secret,
}

impl MadeKey {
    /// Makes one of 256 random bits.
    #[must_use]
    pub fn random() -> Self {
        let handle = random::request_id();
        let key = format!("{KEY_PREFIX}{handle}_{}", random::secret());
        Self {
            handle,
            key: Secret::new(&key),
        }
    }

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> Secret {
        Secret::new(&sha256(self.key.expose().as_bytes()))
    }
}

/// The part of a key that is no secret; `None` for what cannot be a key.
#[must_use]
pub fn handle_of(key: &str) -> Option<&str> {
    let (handle, secret) = key.strip_prefix(KEY_PREFIX)?.split_once('_')?;
    let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let whole = handle.len() == 16 && secret.len() == 64;
    (whole && hexadecimal(handle) && hexadecimal(secret)).then_some(handle)
}

/// Whether a key is the one of which this is kept, in a time that does not tell how much of it is right.
#[must_use]
pub fn fits(key: &str, kept: &Secret) -> bool {
    kept.is(&sha256(key.as_bytes()))
}

/// The SHA-256 of something, as hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits = |mut text: String, byte: &u8| {
        let _ = write!(text, "{byte:02x}");
        text
    };
    digest.iter().fold(String::with_capacity(64), digits)
}

/// The origin that a text names, as it is kept; plain http only where no real shopper comes.
///
/// # Errors
/// What is wrong with it, for people.
pub fn origin(text: &str, production: bool) -> Result<String, &'static str> {
    let url = web_address(text, production)?;
    if url.path() != "/" || url.query().is_some() {
        return Err("an origin has no path");
    }
    Ok(url.origin().ascii_serialization())
}

/// Checks an address that a shopper is to be led back to.
///
/// # Errors
/// What is wrong with it, for people.
pub fn return_url(text: &str, origins: &[String], production: bool) -> Result<(), &'static str> {
    let url = web_address(text, production)?;
    if !origins.contains(&url.origin().ascii_serialization()) {
        return Err("its origin is not one of the shop's");
    }
    Ok(())
}

fn web_address(text: &str, production: bool) -> Result<Url, &'static str> {
    if text.len() > LONGEST_URL {
        return Err("it is longer than 2000 characters");
    }
    let url = Url::parse(text).map_err(|_| "it is no address")?;
    match url.scheme() {
        "https" => {}
        "http" if !production => {}
        _ => return Err("it must begin with https://"),
    }
    // Names before an @ are read as the host by people.
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err("it must have no user, no password and no fragment");
    }
    Ok(url)
}

/// The address that a shopper is led back to: the shop's own with the order's name.
#[must_use]
pub fn return_address(return_url: &str, order: &OrderId) -> String {
    // It was checked before it was stored.
    let Ok(mut url) = Url::parse(return_url) else {
        return return_url.to_owned();
    };
    url.query_pairs_mut().append_pair("order", order.as_str());
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_fits_what_is_kept_of_it_and_nothing_else_does() {
        let made = MadeKey::random();
        let key = made.key.expose();
        assert_eq!(handle_of(key), Some(made.handle.as_str()));
        assert!(fits(key, &made.hash()));
        let other = MadeKey::random();
        assert!(!fits(other.key.expose(), &made.hash()));
        assert_ne!(made.hash(), other.hash());
        let short = &key[..key.len() - 1];
        for bad in [
            "",
            "jari_",
            "jari_a_b",
            short,
            &format!("{key}0"),
            &key.replace("jari_", "x_"),
        ] {
            assert_eq!(handle_of(bad), None, "{bad}");
        }
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn shoppers_are_led_back_to_the_shops_own_origins_only() {
        let origins = [
            "https://shop.example".to_owned(),
            "http://localhost:8080".to_owned(),
        ];
        let back = |text, production| return_url(text, &origins, production).is_ok();
        assert!(back("https://shop.example/done?lang=ko", true));
        assert!(back("https://SHOP.example:443/", true));
        assert!(back("http://localhost:8080/done", false));
        for bad in [
            "http://localhost:8080/done",
            "https://shop.example.evil.example/",
            "https://shop.example@evil.example/",
            "https://user:word@shop.example/",
            "https://shop.example:444/",
            "https://shop.example/#a",
            "javascript:alert(1)",
            "//shop.example/",
            "",
        ] {
            assert!(!back(bad, true), "{bad}");
        }
        assert!(!back(
            &format!("https://shop.example/{}", "a".repeat(2_000)),
            true
        ));
        assert_eq!(
            origin("https://Shop.Example/", true).as_deref(),
            Ok("https://shop.example")
        );
        assert!(origin("https://shop.example/a", true).is_err());
        assert!(origin("http://shop.example", true).is_err());
    }

    #[test]
    fn the_way_back_carries_the_order_and_keeps_what_the_shop_put_there() {
        let order = OrderId::parse("ord_1").unwrap();
        let back = |url| return_address(url, &order);
        assert_eq!(
            back("https://s.example/done"),
            "https://s.example/done?order=ord_1"
        );
        assert_eq!(
            back("https://s.example/?a=b%26c"),
            "https://s.example/?a=b%26c&order=ord_1"
        );
    }
}
