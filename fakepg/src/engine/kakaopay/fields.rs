//! Strict reading of a request's JSON: each call's fields, their types and lengths.

use reqwest::Url;
use serde_json::{Map, Value};

/// What a field must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A text of at most so many characters, not empty.
    Text(usize),
    /// A text of exactly so many characters.
    Exactly(usize),
    /// A JSON integer within bounds; a text of digits is none.
    Whole(u64, u64),
    /// An http or https address of at most 255 characters.
    Address,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A list, or a text that holds one.
    List,
}

/// One field of a call.
pub(super) type Field = (&'static str, bool, Kind);

/// Highest amount that is read, in won.
const MOST_WON: u64 = 1_000_000_000;

const REQUIRED: bool = true;
const OPTIONAL: bool = false;

const CID: Field = ("cid", REQUIRED, Kind::Exactly(10));
const CID_SECRET: Field = ("cid_secret", OPTIONAL, Kind::Text(24));
const TID: Field = ("tid", REQUIRED, Kind::Text(20));
const ORDER_ID: Field = ("partner_order_id", REQUIRED, Kind::Text(100));
const USER_ID: Field = ("partner_user_id", REQUIRED, Kind::Text(100));
const PAYLOAD: Field = ("payload", OPTIONAL, Kind::Text(200));

/// Fields of `ready`.
pub(super) const READY: &[Field] = &[
    CID,
    CID_SECRET,
    ORDER_ID,
    USER_ID,
    ("item_name", REQUIRED, Kind::Text(100)),
    ("item_code", OPTIONAL, Kind::Text(100)),
    ("quantity", REQUIRED, Kind::Whole(1, u32::MAX as u64)),
    ("total_amount", REQUIRED, Kind::Whole(1, MOST_WON)),
    ("tax_free_amount", REQUIRED, Kind::Whole(0, MOST_WON)),
    ("vat_amount", OPTIONAL, Kind::Whole(0, MOST_WON)),
    ("green_deposit", OPTIONAL, Kind::Whole(0, MOST_WON)),
    ("approval_url", REQUIRED, Kind::Address),
    ("cancel_url", REQUIRED, Kind::Address),
    ("fail_url", REQUIRED, Kind::Address),
    ("available_cards", OPTIONAL, Kind::List),
    (
        "payment_method_type",
        OPTIONAL,
        Kind::OneOf(&["CARD", "MONEY"]),
    ),
    ("install_month", OPTIONAL, Kind::Whole(0, 12)),
    ("use_share_installment", OPTIONAL, Kind::OneOf(&["Y", "N"])),
    ("custom_json", OPTIONAL, Kind::Text(1_000)),
];

/// Fields of `approve`.
pub(super) const APPROVE: &[Field] = &[
    CID,
    CID_SECRET,
    TID,
    ORDER_ID,
    USER_ID,
    ("pg_token", REQUIRED, Kind::Text(100)),
    PAYLOAD,
    ("total_amount", OPTIONAL, Kind::Whole(1, MOST_WON)),
];

/// Fields of `order`.
pub(super) const ORDER: &[Field] = &[CID, CID_SECRET, TID];

/// Fields of `cancel`.
pub(super) const CANCEL: &[Field] = &[
    CID,
    CID_SECRET,
    TID,
    ("cancel_amount", REQUIRED, Kind::Whole(1, MOST_WON)),
    ("cancel_tax_free_amount", REQUIRED, Kind::Whole(0, MOST_WON)),
    ("cancel_vat_amount", OPTIONAL, Kind::Whole(0, MOST_WON)),
    (
        "cancel_available_amount",
        OPTIONAL,
        Kind::Whole(0, MOST_WON),
    ),
    PAYLOAD,
];

/// The fields of one request, checked.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body; the error says which field is wrong and why.
    pub(super) fn read(body: &[u8], expected: &[Field]) -> Result<Self, String> {
        let map: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| "the body is no JSON object".to_owned())?;
        for (name, required, kind) in expected {
            match map.get(*name) {
                None | Some(Value::Null) if *required => return Err(format!("{name} is required")),
                None | Some(Value::Null) => {}
                Some(value) => kind.check(value).map_err(|why| format!("{name} {why}"))?,
            }
        }
        Ok(Self(map))
    }

    /// Names that no field has.
    pub(super) fn unknown(&self, expected: &[Field]) -> Vec<String> {
        let known = |name: &String| expected.iter().any(|(known, ..)| known == name);
        self.0.keys().filter(|name| !known(name)).cloned().collect()
    }

    /// A text; empty when it was not given.
    pub(super) fn text(&self, name: &str) -> &str {
        self.given(name).unwrap_or_default()
    }

    /// A text, if it was given.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A number, if it was given.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// A number that is required.
    pub(super) fn won(&self, name: &str) -> u64 {
        self.number(name).unwrap_or(0)
    }
}

/// A text out of a body that was not judged yet.
pub(super) fn name_in(body: &[u8], name: &str) -> Option<String> {
    let map: Map<String, Value> = serde_json::from_slice(body).ok()?;
    map.get(name).and_then(Value::as_str).map(str::to_owned)
}

impl Kind {
    fn check(self, value: &Value) -> Result<(), String> {
        let text = || value.as_str().ok_or("must be a text");
        match self {
            Self::Text(most) => match text()?.chars().count() {
                0 => Err("is empty".to_owned()),
                length if length > most => Err(format!("is longer than {most} characters")),
                _ => Ok(()),
            },
            Self::Exactly(length) if text()?.chars().count() == length => Ok(()),
            Self::Exactly(length) => Err(format!("must have {length} characters")),
            Self::Whole(least, most) => match value.as_u64() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("must be a whole number from {least} to {most}")),
            },
            Self::Address => address(text()?),
            Self::OneOf(texts) if texts.contains(&text()?) => Ok(()),
            Self::OneOf(texts) => Err(format!("must be one of {}", texts.join(", "))),
            Self::List if value.is_array() || value.is_string() => Ok(()),
            Self::List => Err("must be a list".to_owned()),
        }
    }
}

fn address(text: &str) -> Result<(), String> {
    if text.chars().count() > 255 {
        return Err("is longer than 255 characters".to_owned());
    }
    let url = Url::parse(text).ok();
    let web = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    web.map(|_| ())
        .ok_or_else(|| "must be an http or https address".to_owned())
}
