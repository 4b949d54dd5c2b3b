//! The suite against the fake, under both readings of what is not known, and against lies.

use std::io::Write as _;

use fakepg::scenario::Scenario;
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::facts::{Findings, Verdict};
use super::{Gateway, Options, ask, run};

fn options(gateway: Gateway, url: String) -> Options {
    Options {
        gateway,
        url,
        recorded: None,
        out: None,
        toss_secret_key: None,
        kakaopay_secret_key: None,
    }
}

async fn fake(scenario: &str) -> fakepg::Handle {
    // Another test may have set it already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let scenario = Scenario::from_json(scenario.as_bytes()).expect("a scenario");
    let config = fakepg::Config {
        scenario,
        ..fakepg::Config::default()
    };
    fakepg::spawn(config).await.expect("the fake starts")
}

async fn asked(gateway: Gateway, scenario: &str) -> Findings {
    let pg = fake(scenario).await;
    ask(&options(gateway, pg.url())).await.expect("it runs")
}

/// The facts which came to a verdict.
fn with(findings: &Findings, wanted: &Verdict) -> Vec<&'static str> {
    let judged = findings.all().filter(|(_, verdict, _)| verdict == wanted);
    judged.map(|(fact, ..)| fact.id).collect()
}

#[tokio::test]
async fn the_fake_is_as_toss_is_written_down() {
    let findings = asked(Gateway::Toss, "{}").await;
    assert_eq!(
        with(&findings, &Verdict::Differs),
        [""; 0],
        "{}",
        findings.table()
    );
    assert_eq!(
        with(&findings, &Verdict::NotTestableHere),
        ["session", "rate", "transmission-id"]
    );
    assert!(findings.well());
}

#[tokio::test]
async fn the_fake_is_as_kakaopay_is_written_down() {
    let findings = asked(Gateway::Kakaopay, "{}").await;
    assert_eq!(
        with(&findings, &Verdict::Differs),
        [""; 0],
        "{}",
        findings.table()
    );
    assert_eq!(
        with(&findings, &Verdict::NotTestableHere),
        [
            "token.again",
            "return.query",
            "life",
            "platform-timeout",
            "webhooks"
        ]
    );
    assert!(findings.well());
}

#[tokio::test]
async fn each_reading_of_what_is_not_known_is_seen_and_none_is_held_against_a_gateway() {
    let other = r#"{"unconfirmed":"notFound","mismatchCode":"FORBIDDEN_REQUEST"}"#;
    for (scenario, unconfirmed, mismatch) in [
        ("{}", "200 IN_PROGRESS", "400 INVALID_REQUEST"),
        (other, "404 NOT_FOUND_PAYMENT", "403 FORBIDDEN_REQUEST"),
    ] {
        let findings = asked(Gateway::Toss, scenario).await;
        assert!(findings.well(), "{}", findings.table());
        for (id, saw) in [
            ("get.unconfirmed", unconfirmed),
            ("confirm.amount-code", mismatch),
        ] {
            let (verdict, text) = findings.of(id);
            assert_eq!(verdict, Verdict::UncertainSaw);
            assert!(text.starts_with(saw), "{id}: {text}");
        }
    }
    let other = r#"{"kakaopay":{"httpStatus":"always400","timeZone":"utc","cardInfo":"absent",
        "actionDetails":"absent","invalidRequestCode":"-400","cancelAgainCode":"-784"}}"#;
    for (scenario, readings) in [
        (
            "{}",
            [
                "401 -401",
                "400 -2",
                "KST",
                "approved_id",
                "400 -710",
                "aid, amount",
            ],
        ),
        (
            other,
            [
                "400 -401",
                "400 -400",
                "UTC",
                "absent",
                "400 -784",
                "aid, approved_at",
            ],
        ),
    ] {
        let findings = asked(Gateway::Kakaopay, scenario).await;
        assert!(findings.well(), "{}", findings.table());
        let ids = [
            "auth.status",
            "ready.missing",
            "time-zone",
            "approve.card",
            "cancel.again",
            "order.action",
        ];
        for (id, reading) in ids.into_iter().zip(readings) {
            let (verdict, saw) = findings.of(id);
            assert_eq!(verdict, Verdict::UncertainSaw, "{id}");
            assert!(saw.contains(reading), "{id}: {saw}");
        }
    }
}

#[tokio::test]
async fn a_gateway_that_lies_is_caught() {
    use Gateway::{Kakaopay, Toss};
    for (gateway, scenario, caught) in [
        (Toss, r#"{"idempotency":"off"}"#, "key.replay"),
        (Toss, r#"{"body":"wrongAmount"}"#, "confirm"),
        (Toss, r#"{"decline":{}}"#, "confirm"),
        (Toss, r#"{"operations":["get"],"body":"html"}"#, "get.order"),
        (
            Toss,
            r#"{"operations":["cancel"],"error":{"status":500,"code":"UNKNOWN_ERROR","when":"after"}}"#,
            "cancel.part",
        ),
        (
            Kakaopay,
            r#"{"operations":["confirm"],"body":"wrongAmount"}"#,
            "approve",
        ),
        (
            Kakaopay,
            r#"{"operations":["get"],"decline":{"code":"-722"},"loss":{}}"#,
            "order.charged",
        ),
        (
            Kakaopay,
            r#"{"operations":["ready"],"error":{"status":500,"code":"-500"}}"#,
            "ready",
        ),
        (
            Kakaopay,
            r#"{"kakaopay":{"staleForMs":600000}}"#,
            "order.charged",
        ),
        (
            Kakaopay,
            r#"{"operations":["cancel"],"redirect":{"status":302,"location":"http://x/"}}"#,
            "cancel.rest",
        ),
    ] {
        let findings = asked(gateway, scenario).await;
        let differs = with(&findings, &Verdict::Differs);
        assert!(differs.contains(&caught), "{scenario}: {differs:?}");
        assert!(!findings.well());
    }
}

#[tokio::test]
async fn what_a_person_did_and_saw_is_taken_from_the_recording() {
    let pg = fake("{}").await;
    let key = pg.authenticate("recorded_1", 50_000);
    let mut file = NamedTempFile::new().expect("a file");
    let recorded = json!({
        "payments": [{"orderId": "recorded_1", "amount": 50_000, "paymentKey": key}],
        "seen": {"session": "404 NOT_FOUND_PAYMENT_SESSION", "rate": "an empty body", "trace": "absent"},
    });
    write!(file, "{recorded}").expect("writes");
    let mut options = options(Gateway::Toss, pg.url());
    options.recorded = Some(file.path().to_owned());
    let findings = ask(&options).await.expect("it runs");
    assert!(findings.well(), "{}", findings.table());
    assert_eq!(pg.ledger().orders["recorded_1"].charged_won, 50_000);
    let (verdict, saw) = findings.of("session");
    assert_eq!(
        (verdict, saw.as_str()),
        (Verdict::Ok, "404 NOT_FOUND_PAYMENT_SESSION (recorded)")
    );
    assert_eq!(findings.of("rate").0, Verdict::UncertainSaw);
    // What the suite saw itself is not overruled.
    assert_eq!(findings.of("trace"), (Verdict::Ok, "there".to_owned()));

    let mut file = NamedTempFile::new().expect("a file");
    write!(file, r#"{{"seen":{{"no.such.fact":"x"}}}}"#).expect("writes");
    options.recorded = Some(file.path().to_owned());
    let error = ask(&options).await.expect_err("refused");
    assert!(error.to_string().contains("no.such.fact"), "{error:#}");
}

/// A server that knows no address.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4_096];
            let _ = stream.read(&mut head).await;
            let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn without_the_fake_or_a_recording_the_facts_of_a_payment_need_a_person() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    for gateway in [Gateway::Toss, Gateway::Kakaopay] {
        let findings = ask(&options(gateway, nobody().await))
            .await
            .expect("it runs");
        let id = if gateway == Gateway::Toss {
            "confirm"
        } else {
            "approve"
        };
        let (verdict, why) = findings.of(id);
        assert_eq!(verdict, Verdict::NotTestableHere);
        assert!(
            why.contains("person") && why.contains("--recorded"),
            "{why}"
        );
        assert_eq!(findings.of("auth.key").0, Verdict::Differs);
        assert!(!findings.well());
    }
}

#[tokio::test]
async fn findings_are_printed_and_written_and_no_key_is_in_them() {
    let pg = fake("{}").await;
    let file = NamedTempFile::new().expect("a file");
    for gateway in [Gateway::Toss, Gateway::Kakaopay] {
        let mut options = options(gateway, format!("{}/", pg.url()));
        options.out = Some(file.path().to_owned());
        let (table, well) = run(&options).await.expect("it runs");
        assert!(well, "{table}");
        let written = std::fs::read_to_string(file.path()).expect("text");
        let json: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        let facts = json["facts"].as_array().expect("a list");
        assert!(facts.len() >= 34 && json["well"] == true);
        for fact in facts {
            for field in ["id", "what", "source", "how", "said", "saw", "verdict"] {
                assert!(fact[field].is_string(), "{field} of {fact}");
            }
            assert!(fact["certain"].is_boolean());
            let id = fact["id"].as_str().expect("text");
            assert!(table.contains(&format!("| {id} |")), "{id}");
        }
        for secret in ["test_sk_fake", "DEV_fake"] {
            assert!(!written.contains(secret) && !table.contains(secret));
        }
    }
}

#[tokio::test]
async fn a_key_that_moves_real_money_is_refused_and_not_repeated() {
    let url = "http://127.0.0.1:9".to_owned();
    let mut toss = options(Gateway::Toss, url.clone());
    toss.toss_secret_key = Some("live_sk_abcdef".to_owned());
    let mut kakaopay = options(Gateway::Kakaopay, url);
    kakaopay.kakaopay_secret_key = Some("PRDabcdef".to_owned());
    for options in [toss, kakaopay] {
        let error = ask(&options).await.expect_err("refused");
        assert!(!format!("{error:#}").contains("abcdef"), "{error:#}");
    }
}
