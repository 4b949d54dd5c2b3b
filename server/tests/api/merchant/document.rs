//! The document that is served, and every answer held against it.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use crate::shop::{Reply, Shop};

pub(super) struct Document(Value);

impl Document {
    pub(super) async fn of(shop: &Shop) -> Self {
        let answer = shop.get("/v1/openapi.json").send().await;
        let reply = Reply::of(answer.expect("an answer")).await;
        assert_eq!(reply.status, 200);
        Self(reply.body)
    }

    /// The operation that an address belongs to.
    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let paths = self.0["paths"].as_object().expect("paths");
        let parts: Vec<_> = path.split('/').collect();
        let fits = |template: &str| {
            let of_template: Vec<_> = template.split('/').collect();
            let mut both = of_template.iter().zip(&parts);
            of_template.len() == parts.len()
                // An order without a name is one that is not there.
                && both.all(|(known, given)| known == given || known.starts_with('{'))
        };
        let (_, found) = paths.iter().find(|(template, _)| fits(template))?;
        found.get(method.as_str().to_lowercase())
    }

    /// Asserts that an answer is one that the document names, in the shape that it gives.
    #[track_caller]
    pub(super) fn check(&self, method: &Method, path: &str, reply: &Reply) {
        let said = format!("{method} {path}: {} {:?}", reply.status, reply.body);
        let Some(operation) = self.operation(method, path) else {
            panic!("not documented: {said}");
        };
        let response = &operation["responses"][reply.status.to_string()];
        let (kind, content) = response["content"]
            .as_object()
            .and_then(|content| content.iter().next())
            .unwrap_or_else(|| panic!("no such answer is documented: {said}"));
        assert_eq!(reply.headers[CONTENT_TYPE], kind.as_str(), "{said}");
        let mut wrong = Vec::new();
        self.judge(&content["schema"], &reply.body, "answer", &mut wrong);
        assert!(wrong.is_empty(), "{said}: {wrong:?}");
    }

    /// Notes where a value is not as a schema says. It knows the keywords that the document uses, and no others.
    fn judge(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        for (keyword, says) in schema.as_object().expect("a schema") {
            let right = match keyword.as_str() {
                "description" | "format" | "required" => true,
                "$ref" => {
                    let pointer = says.as_str().expect("a reference").trim_start_matches('#');
                    let schema = self.0.pointer(pointer).expect("what it refers to");
                    self.judge(schema, value, at, wrong);
                    true
                }
                "type" => says == kind_of(value),
                "enum" => says.as_array().expect("values").contains(value),
                "minimum" => value.as_i64() >= says.as_i64(),
                "maximum" => value.as_i64() <= says.as_i64(),
                "minLength" => length(value) >= says.as_u64(),
                "maxLength" => length(value) <= says.as_u64(),
                "minItems" => value.as_array().map(|all| all.len() as u64) >= says.as_u64(),
                "maxItems" => value.as_array().map(|all| all.len() as u64) <= says.as_u64(),
                "items" => {
                    for one in value.as_array().into_iter().flatten() {
                        self.judge(says, one, &format!("{at}[]"), wrong);
                    }
                    true
                }
                "properties" => self.judge_fields(schema, value, at, wrong),
                "additionalProperties" => *says == Value::Bool(false),
                other => panic!("a keyword that is not judged: {other}"),
            };
            if !right {
                wrong.push(format!("{at} is not as {keyword} says: {value}"));
            }
        }
    }

    /// Whether an object has the fields that it must have and none that are not named.
    fn judge_fields(
        &self,
        schema: &Value,
        value: &Value,
        at: &str,
        wrong: &mut Vec<String>,
    ) -> bool {
        let Some(fields) = value.as_object() else {
            return false;
        };
        for (name, field) in fields {
            match schema["properties"].get(name) {
                Some(schema) => self.judge(schema, field, &format!("{at}.{name}"), wrong),
                None => wrong.push(format!("{at}.{name} is not named")),
            }
        }
        let mut required = schema["required"].as_array().into_iter().flatten();
        required.all(|name| fields.contains_key(name.as_str().unwrap_or_default()))
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

#[tokio::test]
async fn the_document_names_every_route_and_the_codes_of_its_problems() {
    let shop = Shop::open().await;
    let Document(document) = Document::of(&shop).await;
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1"))
    );
    let paths = document["paths"].as_object().expect("paths");
    let mut named = Vec::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().expect("methods") {
            named.push(format!("{method} {path}"));
            assert!(
                operation["security"][0]["key"].is_array(),
                "{method} {path}"
            );
            let responses = operation["responses"].as_object().expect("responses");
            for status in ["401", "429", "503"] {
                assert!(responses.contains_key(status), "{method} {path}: {status}");
            }
        }
    }
    named.sort();
    assert_eq!(
        named,
        [
            "get /v1/orders",
            "get /v1/orders/{order}",
            "post /v1/orders",
            "post /v1/orders/{order}/refunds",
        ]
    );
    shop.end().await;
}
