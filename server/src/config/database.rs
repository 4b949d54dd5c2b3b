//! The database's address, which may hold a password and so never prints whole.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// `sqlite://FILE` or `postgres://…`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// An address as it was given.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self(url.to_owned())
    }

    /// The whole address, for the one place that connects with it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it names a PostgreSQL database.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| self.0.starts_with(scheme))
    }

    /// Whether it names a kind of database that we have.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_postgres() || self.0.starts_with("sqlite:")
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_known() {
            return f.write_str("***");
        }
        if !self.is_postgres() {
            return f.write_str(&self.0);
        }
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("postgres", ""));
        // Users and passwords stand before the host, or among the parameters.
        let rest = rest.split(['?', '#']).next().unwrap_or("");
        match rest.rsplit_once('@') {
            Some((_, place)) => write!(f, "{scheme}://***@{place}"),
            None => write!(f, "{scheme}://{rest}"),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DatabaseUrl {
    type Err = std::convert::Infallible;

    // A refusal here would be printed with the value; what it is is checked with the other settings.
    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_ever_printed() {
        for url in [
            "postgres://jari:hunter2@db.example:5432/jari?sslmode=require",
            "postgresql://jari:hun@ter2@db.example/jari",
            "postgres://jari@db.example/jari?password=hunter2",
            "postgres://db.example/jari#hunter2",
            "postgrs://jari:hunter2@db.example/jari",
            "hunter2",
        ] {
            let url = DatabaseUrl::new(url);
            let printed = format!("{url} {url:?}");
            assert!(!printed.contains("ter2"), "{printed}");
        }
        let url = DatabaseUrl::new("postgres://jari:hunter2@db.example:5432/jari?x=1");
        assert_eq!(url.to_string(), "postgres://***@db.example:5432/jari");
        let url = DatabaseUrl::new("sqlite://jari.db");
        assert_eq!(url.to_string(), "sqlite://jari.db");
    }
}
