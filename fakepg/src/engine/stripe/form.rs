//! Stripe's form-encoded bodies, held to the parameters that a call has: an unknown one is refused.

use reqwest::Url;

use super::codes;
use crate::engine::Answer;

/// The parameters of one call, in order.
#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a body; parameters that are not among `known` are refused. A known name that ends in `[]` or `[*]` stands for
    /// every name with an index or a word in its place.
    pub(super) fn read(body: &[u8], known: &[&str]) -> Result<Self, Box<Answer>> {
        let text =
            std::str::from_utf8(body).map_err(|_| Box::new(codes::plain("", "not a form")))?;
        let form = Self::parse(text);
        for (name, _) in &form.0 {
            if !known.iter().any(|known| fits(known, name)) {
                return Err(Box::new(codes::parameter("parameter_unknown", name)));
            }
        }
        Ok(form)
    }

    fn parse(text: &str) -> Self {
        let Ok(mut url) = Url::parse("http://form/") else {
            return Self::default();
        };
        url.set_query(Some(text));
        Self(url.query_pairs().into_owned().collect())
    }

    /// A parameter, if it was given.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A parameter that must be given.
    pub(super) fn text(&self, name: &str) -> Result<&str, Box<Answer>> {
        match self.given(name) {
            None => Err(Box::new(codes::parameter("parameter_missing", name))),
            Some("") => Err(Box::new(codes::parameter("parameter_invalid_empty", name))),
            Some(text) => Ok(text),
        }
    }

    /// A whole number, if it was given.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Box<Answer>> {
        let Some(text) = self.given(name) else {
            return Ok(None);
        };
        let number = text.parse().map(Some);
        number.map_err(|_| Box::new(codes::parameter("parameter_invalid_integer", name)))
    }

    /// What stands below a name: `metadata[order]` under `metadata`.
    pub(super) fn below(&self, name: &str) -> Vec<(String, String)> {
        let start = format!("{name}[");
        let inner = |(known, value): &(String, String)| {
            let word = known.strip_prefix(&start)?.strip_suffix(']')?;
            Some((word.to_owned(), value.clone()))
        };
        self.0.iter().filter_map(inner).collect()
    }
}

fn fits(known: &str, name: &str) -> bool {
    let start = known
        .strip_suffix("[*]")
        .or_else(|| known.strip_suffix("[]"));
    match start {
        None => known == name,
        Some(start) => name
            .strip_prefix(start)
            .is_some_and(|rest| rest.starts_with('[') && rest.ends_with(']')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_their_names_and_unknown_ones_are_refused() {
        let known = ["amount", "metadata[*]", "expand[]"];
        let form = Form::read(
            b"amount=300&metadata%5Border%5D=a%20b&expand%5B%5D=charge",
            &known,
        )
        .expect("a form");
        assert_eq!(form.number("amount").expect("a number"), Some(300));
        assert_eq!(
            form.below("metadata"),
            [("order".to_owned(), "a b".to_owned())]
        );
        for bad in [&b"amounts=1"[..], b"metadata=1", b"a=1&amount=1"] {
            assert!(Form::read(bad, &known).is_err(), "{bad:?}");
        }
        let form = Form::read(b"amount=3.5", &known).expect("a form");
        assert!(form.number("amount").is_err());
    }
}
