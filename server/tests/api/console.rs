//! The operators' console over HTTP: who gets in, what is done there, and what is kept of it.

use argon2::password_hash::PasswordHasher as _;
use argon2::{Algorithm, Argon2, Params, Version};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde_json::json;

use crate::operator::unknown;
use crate::shop::Shop;

const PASSWORD: &str = "correct horse battery";

/// A hash that costs next to nothing.
pub(crate) fn hash() -> String {
    let cheap = Params::new(8, 1, 1, None).expect("parameters");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, cheap);
    let hash = argon2.hash_password(PASSWORD.as_bytes());
    hash.expect("a hash").to_string()
}

async fn shop_with_console() -> Shop {
    Shop::with(&[("JARI_OPS_PASSWORD_HASH", &hash())]).await
}

/// A browser at the console: it follows no redirect by itself, and keeps the console's cookie.
pub(crate) struct Operator<'a> {
    shop: &'a Shop,
    client: Client,
    cookie: Option<String>,
}

fn client() -> Client {
    let client = Client::builder().no_proxy().redirect(Policy::none());
    client.build().expect("a client")
}

impl<'a> Operator<'a> {
    fn at(shop: &'a Shop) -> Self {
        Self {
            shop,
            client: client(),
            cookie: None,
        }
    }

    pub(crate) async fn signed_in(shop: &'a Shop) -> Self {
        let mut operator = Self::at(shop);
        assert_eq!(operator.sign_in(PASSWORD).await, "/ops");
        assert!(operator.cookie.is_some());
        operator
    }

    /// Where the sign-in leads.
    async fn sign_in(&mut self, password: &str) -> String {
        let form = [("name", "kim"), ("password", password)];
        let answer = self.post("/ops/sign-in", &form).await;
        let cookie = answer.headers().get("set-cookie");
        if let Some(cookie) = cookie {
            let text = cookie.to_str().expect("text");
            assert!(
                text.contains("HttpOnly") && text.contains("SameSite=Strict"),
                "{text}"
            );
            self.cookie = text.split(';').next().map(str::to_owned);
        }
        leads_to(&answer)
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let request = self
            .client
            .post(format!("{}{path}", self.shop.url))
            .form(form);
        let cookie = self.cookie.clone().unwrap_or_default();
        request
            .header("cookie", cookie)
            .send()
            .await
            .expect("an answer")
    }

    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        let request = self.client.get(format!("{}{path}", self.shop.url));
        let cookie = self.cookie.clone().unwrap_or_default();
        let request = request
            .header("cookie", cookie)
            .header("accept-language", "en");
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a page"))
    }

    /// The attempt's number, from the order's page.
    async fn attempt(&self, order: &str) -> String {
        let (_, page) = self.page(&format!("/ops/orders/{order}")).await;
        let after = page.split("/ops/attempts/").nth(1).expect("a form");
        after.split('/').next().expect("a number").to_owned()
    }
}

fn leads_to(answer: &Response) -> String {
    assert_eq!(answer.status(), 303);
    let to = answer.headers().get("location").expect("an address");
    to.to_str().expect("text").to_owned()
}

#[tokio::test]
async fn without_a_password_there_is_no_console() {
    let shop = Shop::open().await;
    let stranger = Operator::at(&shop);
    for path in ["/ops", "/ops/audit", "/ops/orders/ord_1", "/ops/find?q=1"] {
        assert_eq!(stranger.page(path).await.0, 404, "{path}");
    }
    let form = [("name", "kim"), ("password", PASSWORD)];
    assert_eq!(stranger.post("/ops/sign-in", &form).await.status(), 404);
    shop.end().await;
}

#[tokio::test]
async fn a_wrong_password_is_let_in_never_and_tried_only_so_often() {
    let shop = shop_with_console().await;
    let mut guesser = Operator::at(&shop);
    for _ in 0..5 {
        let to = guesser.sign_in("a guess").await;
        assert_eq!(to, "/ops?notice=wrong_password");
    }
    // The right one does not help any more: nothing is looked at.
    assert_eq!(guesser.sign_in(PASSWORD).await, "/ops?notice=too_often");
    assert!(guesser.cookie.is_none());
    let counted = |result| format!("console_sign_ins_total{{result=\"{result}\"}}");
    assert!((shop.metric(&counted("wrong")).await - 5.0).abs() < 0.5);
    assert!((shop.metric(&counted("limited")).await - 1.0).abs() < 0.5);
    shop.end().await;
}

#[tokio::test]
async fn who_is_not_signed_in_sees_nothing_and_changes_nothing() {
    let shop = shop_with_console().await;
    let (order, _) = unknown(&shop, "after").await;
    let operator = Operator::signed_in(&shop).await;
    let attempt = operator.attempt(&order.id).await;
    let mut stranger = Operator::at(&shop);
    for cookie in [None, Some("jari_operator=0123456789".to_owned())] {
        stranger.cookie = cookie;
        for path in ["/ops", "/ops/audit", &format!("/ops/orders/{}", order.id)] {
            let (status, page) = stranger.page(path).await;
            assert!(
                status == 200 && page.contains("operator-password"),
                "{path}"
            );
            assert!(!page.contains("data-testid=\"desk\""), "{path}");
            assert!(!page.contains("open-payment"), "{path}");
        }
        let form = [("word", "charged"), ("reason", "because")];
        let resolve = format!("/ops/attempts/{attempt}/resolve");
        let answer = stranger.post(&resolve, &form).await;
        assert_eq!(leads_to(&answer), "/ops?notice=signed_out");
    }
    // A form of another site changes nothing either, though the browser brings the cookie along.
    let forged = operator
        .client
        .post(format!("{}/ops/attempts/{attempt}/resolve", shop.url))
        .header("cookie", operator.cookie.clone().unwrap_or_default())
        .header("origin", "https://evil.example")
        .form(&[("word", "charged"), ("reason", "because")]);
    assert_eq!(forged.send().await.expect("an answer").status(), 403);
    shop.poll(&order).await.attempt("unknown");
    // Nor does a session that was ended.
    leads_to(&operator.post("/ops/sign-out", &[]).await);
    let (_, page) = operator.page("/ops").await;
    assert!(page.contains("operator-password"));
    shop.set(json!({})).await;
    shop.until_status(&order, "paid").await;
    shop.end().await;
}

#[tokio::test]
async fn a_stuck_doubt_is_ended_with_a_reason_and_that_is_kept() {
    let shop = shop_with_console().await;
    let (order, key) = unknown(&shop, "before").await;
    let operator = Operator::signed_in(&shop).await;
    let (_, page) = operator.page("/ops").await;
    assert!(page.contains(&order.id) && !page.contains(&key));
    // By whatever name it is known.
    let attempt = operator.attempt(&order.id).await;
    for name in [order.id.as_str(), &attempt, &key] {
        let (status, _) = operator.page(&format!("/ops/find?q={name}")).await;
        assert_eq!(status, 303, "{name}");
    }
    let resolve = format!("/ops/attempts/{attempt}/resolve");
    let here = format!("/ops/orders/{}", order.id);
    let say = async |form: &[(&str, &str)]| {
        let to = leads_to(&operator.post(&resolve, form).await);
        to.split_once("?notice=").expect("a notice").1.to_owned()
    };
    let word = ("word", "not_charged");
    assert_eq!(say(&[word, ("reason", " ")]).await, "no_reason");
    assert_eq!(
        say(&[word, ("reason", "seen at the desk")]).await,
        "too_early"
    );
    shop.poll(&order).await.attempt("unknown");
    let certain = [word, ("reason", "seen at the desk"), ("early", "1")];
    assert_eq!(say(&certain).await, "resolved");
    let state = shop.until_attempt(&order, "failed").await;
    assert_eq!(state.body["attempt"]["reason"], "ended_by_operator");
    assert_eq!(say(&certain).await, "not_unknown");
    let kept = shop.evidence(&order.id).await;
    let word = ("operator".to_owned(), "by kim: seen at the desk".to_owned());
    assert!(kept.contains(&word), "{kept:?}");
    // The order's page and the audit tell who did what, and what it came to.
    for path in [here.as_str(), "/ops/audit"] {
        let (_, page) = operator.page(path).await;
        for text in [
            "kim",
            "seen at the desk",
            "too_early",
            "resolved",
            "not_unknown",
        ] {
            assert!(page.contains(text), "{path}: {text}");
        }
    }
    shop.set(json!({})).await;
    shop.end().await;
}

#[tokio::test]
async fn an_operator_asks_the_gateway_and_gives_money_back_once() {
    let shop = shop_with_console().await;
    let (order, _) = unknown(&shop, "after").await;
    let operator = Operator::signed_in(&shop).await;
    let attempt = operator.attempt(&order.id).await;
    shop.set(json!({})).await;
    let asked = operator
        .post(&format!("/ops/attempts/{attempt}/ask"), &[])
        .await;
    assert!(leads_to(&asked).ends_with("?notice=asked"));
    shop.until_status(&order, "paid").await;
    let refund = format!("/ops/orders/{}/refund", order.id);
    let say = async |form: &[(&str, &str)]| {
        let to = leads_to(&operator.post(&refund, form).await);
        to.split_once("?notice=").expect("a notice").1.to_owned()
    };
    let key = ("key", "rendered-once");
    assert_eq!(
        say(&[key, ("reason", ""), ("amount", "")]).await,
        "no_reason"
    );
    assert_eq!(
        say(&[key, ("reason", "broken"), ("amount", "0")]).await,
        "no_amount"
    );
    let part = [key, ("reason", "broken"), ("amount", "1,000원")];
    assert_eq!(say(&part).await, "refund_asked");
    assert_eq!(say(&part).await, "refund_asked");
    shop.until_status(&order, "partially_canceled").await;
    let refunds = async || {
        let (_, page) = operator.page(&format!("/ops/orders/{}", order.id)).await;
        let row = "data-testid=\"refund-row\" data-status=\"done\"";
        (
            page.matches("refund-row").count(),
            page.matches(row).count(),
        )
    };
    assert_eq!(refunds().await, (1, 1));
    let much = [
        ("key", "another"),
        ("reason", "broken"),
        ("amount", "99999999"),
    ];
    assert_eq!(say(&much).await, "refund_refused");
    assert_eq!(refunds().await, (1, 1));
    shop.end().await;
}
