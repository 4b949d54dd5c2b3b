//! A raw client of both wires, and what is to be seen in an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Method};
use serde_json::Value;

/// Asks one gateway with one key.
#[derive(Debug)]
pub(super) struct Asker {
    client: Client,
    url: String,
    /// The header of the merchant.
    pub(super) authorization: String,
}

/// One call.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Option<&'a Value>,
    /// In place of the merchant's; empty: none at all.
    pub(super) authorization: Option<&'a str>,
    pub(super) headers: &'a [(&'static str, &'a str)],
}

impl<'a> Ask<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            body: None,
            authorization: None,
            headers: &[],
        }
    }

    pub(super) fn post(path: &'a str, body: &'a Value) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(path)
        }
    }

    pub(super) fn with(mut self, headers: &'a [(&'static str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    pub(super) fn by(mut self, authorization: &'a str) -> Self {
        self.authorization = Some(authorization);
        self
    }
}

/// What came back; no status when nothing did.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: Option<u16>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) text: String,
    pub(super) json: Value,
}

/// What `holds` says when everything does.
pub(super) const AS_SAID: &str = "as said";

impl Asker {
    pub(super) fn toss(client: Client, url: &str, key: &str) -> Self {
        Self::new(client, url, basic(&format!("{key}:")))
    }

    pub(super) fn kakaopay(client: Client, url: &str, key: &str) -> Self {
        Self::new(client, url, format!("SECRET_KEY {key}"))
    }

    fn new(client: Client, url: &str, authorization: String) -> Self {
        Self {
            client,
            url: url.to_owned(),
            authorization,
        }
    }

    /// Makes a call. That no answer came is an answer too.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Answer {
        let address = format!("{}{}", self.url, ask.path);
        let mut request = self.client.request(ask.method, address);
        match ask.authorization {
            Some("") => {}
            Some(other) => request = request.header(AUTHORIZATION, other),
            None => request = request.header(AUTHORIZATION, &self.authorization),
        }
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = ask.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        match Self::read(request).await {
            Ok(answer) => answer,
            // Without its address, which may hold an identifier.
            Err(error) => Answer {
                text: error.without_url().to_string(),
                ..Answer::default()
            },
        }
    }

    async fn read(request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
        let response = request.send().await?;
        let status = Some(response.status().as_u16());
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let text = response.text().await?;
        let json = serde_json::from_str(&text).unwrap_or_default();
        Ok(Answer {
            status,
            headers,
            text,
            json,
        })
    }
}

/// `Basic` with padding, as Toss's samples have it.
pub(super) fn basic(user: &str) -> String {
    format!("Basic {}", STANDARD.encode(user))
}

impl Answer {
    /// Status and code: what a refusal comes down to.
    pub(super) fn brief(&self) -> String {
        let Some(status) = self.status else {
            return format!("no answer: {}", self.text);
        };
        let code = &self.json["code"];
        let number = &self.json["error_code"];
        match (code.as_str(), number.as_i64()) {
            (Some(code), _) => format!("{status} {code}"),
            (None, Some(number)) => format!("{status} {number}"),
            (None, None) => status.to_string(),
        }
    }

    /// Only the code, where the status is not known for sure.
    pub(super) fn code(&self) -> String {
        match self.json["error_code"].as_i64() {
            Some(number) => number.to_string(),
            None => self.brief(),
        }
    }

    pub(super) fn header(&self, wanted: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(name, _)| name == wanted);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Whether it is a 200 with these values at these places; says the first that is not.
    pub(super) fn holds(&self, expected: &[(&str, Value)]) -> String {
        if self.status != Some(200) {
            return self.brief();
        }
        for (pointer, value) in expected {
            let found = self.json.pointer(pointer).unwrap_or(&Value::Null);
            if found != value {
                return format!("{pointer} is {found}, not {value}");
            }
        }
        AS_SAID.to_owned()
    }

    /// A text at a place.
    pub(super) fn text_at(&self, pointer: &str) -> &str {
        self.json
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}
