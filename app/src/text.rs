//! The catalogue of messages: every word that people read, in Korean and English.

use serde::{Deserialize, Serialize};

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    /// Korean, the default.
    Ko,
    /// English.
    En,
}

impl Lang {
    /// The BCP 47 tag.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Ko => "ko",
            Self::En => "en",
        }
    }

    /// Reads a tag such as a cookie holds.
    #[must_use]
    pub fn parse(tag: &str) -> Option<Self> {
        match tag {
            "ko" => Some(Self::Ko),
            "en" => Some(Self::En),
            _ => None,
        }
    }
}
