//! What can and cannot be configured, and where windows may be.

use super::*;

fn config() -> KakaoPayConfig {
    KakaoPayConfig {
        name: GatewayName::parse("kakaopay").unwrap(),
        base_url: "https://open-api.kakaopay.com".to_owned(),
        cid: "TC0ONETIME".to_owned(),
        secret_key: Secret::new("DEV1234567890"),
        pg_timeout: Millis::from_secs(15),
        connect_timeout: Millis::from_secs(3),
        inquiry_timeout: KakaoPayConfig::INQUIRY_TIMEOUT,
        confirm_window: KakaoPayConfig::CONFIRM_WINDOW,
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_and_no_error_or_debug_shows_the_secret() {
    let bad_url = |url: &str| KakaoPayConfig {
        base_url: url.to_owned(),
        ..config()
    };
    let bad_cid = |cid: &str| KakaoPayConfig {
        cid: cid.to_owned(),
        ..config()
    };
    let bad_secret = |secret: &str| KakaoPayConfig {
        secret_key: Secret::new(secret),
        ..config()
    };
    let short = Millis::new(9);
    for broken in [
        bad_url("open-api.kakaopay.com"),
        bad_url("ftp://open-api.kakaopay.com"),
        bad_url("https://user:secret@open-api.kakaopay.com"),
        bad_url("https://open-api.kakaopay.com?a=1"),
        bad_cid(""),
        bad_cid("TC0ONETIM"),
        bad_cid("TC0ONETIMES"),
        bad_cid("TC0ONE TIM"),
        bad_secret(""),
        bad_secret("DEV123 4567890"),
        bad_secret("DEV1234567890\n"),
        KakaoPayConfig {
            pg_timeout: short,
            ..config()
        },
        KakaoPayConfig {
            connect_timeout: short,
            ..config()
        },
        KakaoPayConfig {
            inquiry_timeout: short,
            ..config()
        },
    ] {
        assert!(!format!("{broken:?}").contains("DEV123"));
        let error = KakaoPay::new(broken).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("DEV123") && !shown.contains("secret@"),
            "{shown}"
        );
    }
    let kakaopay = KakaoPay::new(config()).unwrap();
    assert!(!format!("{kakaopay:?}").contains("DEV123"));
}

#[test]
fn the_sheet_says_that_nothing_can_be_repeated_and_only_the_tid_finds_a_payment() {
    let kakaopay = KakaoPay::new(config()).unwrap();
    let sheet = kakaopay.capabilities();
    assert_eq!(sheet.idempotency, None);
    assert!(!sheet.inquiry_by_order && sheet.opens_by_call && sheet.partial_cancel);
    assert_eq!(sheet.confirm_window, Millis::from_secs(900));
    assert_eq!(sheet.platform_timeout, Some(Millis::from_secs(11)));
    assert!(sheet.webhooks.is_empty() && !sheet.deposits);
}

#[test]
fn windows_are_at_kakaos_own_domains_or_beside_a_fake() {
    let windows = |base: &str| Windows::of(&Url::parse(base).unwrap());
    let allows = |windows: &Windows, url: &str| windows.allow(&Url::parse(url).unwrap());
    let real = windows("https://open-api.kakaopay.com");
    let expected = ["https://*.kakaopay.com", "https://*.kakao.com"];
    assert_eq!(real.origins(), expected);
    for good in [
        "https://online-payment.kakaopay.com/mockup/bridge/pc/pg/one-time/payment/h",
        "https://online-pay.kakao.com/mockup/v1/h/info",
    ] {
        assert!(allows(&real, good), "{good}");
    }
    for bad in [
        "http://online-pay.kakao.com/mockup/v1/h/info",
        "https://kakao.com.evil.example/info",
        "https://evilkakao.com/info",
        "https://evil.example/.kakao.com",
        "javascript:alert(1)",
        "kakaotalk://kakaopay/pg?url=https://online-pay.kakao.com/pay/h",
    ] {
        assert!(!allows(&real, bad), "{bad}");
    }
    let fake = windows("http://127.0.0.1:3900/kakao");
    assert_eq!(fake.origins(), ["http://127.0.0.1:3900"]);
    assert!(allows(&fake, "http://127.0.0.1:3900/window/kakaopay?x=1"));
    assert!(!allows(&fake, "http://127.0.0.1:3901/window"));
    // A name that only ends alike is not KakaoPay.
    assert_eq!(
        windows("https://notkakaopay.com").origins(),
        ["https://notkakaopay.com"]
    );
}
