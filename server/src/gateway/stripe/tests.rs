//! What the adapter takes as its settings, and what its sheet says.

use super::*;

fn config() -> StripeConfig {
    StripeConfig {
        name: GatewayName::parse("stripe").unwrap(),
        base_url: "https://api.stripe.com".to_owned(),
        secret_key: Secret::new("sk_test_1234567890"),
        webhook_secret: Secret::new("whsec_1234567890"),
        pg_timeout: Millis::from_secs(60),
        connect_timeout: Millis::from_secs(3),
        inquiry_timeout: StripeConfig::INQUIRY_TIMEOUT,
        confirm_window: Millis::from_secs(600),
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_and_no_error_or_debug_shows_a_secret() {
    let bad_url = |url: &str| StripeConfig {
        base_url: url.to_owned(),
        ..config()
    };
    for broken in [
        bad_url("api.stripe.com"),
        bad_url("ftp://api.stripe.com"),
        bad_url("https://user:secret@api.stripe.com"),
        StripeConfig {
            secret_key: Secret::new("sk_test_1234567890\n"),
            ..config()
        },
        StripeConfig {
            webhook_secret: Secret::new(""),
            ..config()
        },
        StripeConfig {
            inquiry_timeout: Millis::new(9),
            ..config()
        },
    ] {
        assert!(!format!("{broken:?}").contains("1234567890"));
        let error = Stripe::new(broken).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("1234567890") && !shown.contains("secret@"),
            "{shown}"
        );
    }
    assert!(!format!("{:?}", Stripe::new(config()).unwrap()).contains("1234567890"));
}

#[test]
fn the_sheet_says_what_may_be_repeated_and_what_is_signed() {
    let stripe = Stripe::new(config()).unwrap();
    let sheet = stripe.capabilities();
    assert_eq!(sheet.idempotency, Some(Millis::from_secs(23 * 3_600)));
    assert!(!sheet.inquiry_by_order && sheet.opens_by_call && sheet.partial_cancel);
    let signed = super::super::WebhookProof::Signature;
    assert!(sheet.webhooks.iter().all(|kind| kind.proof == signed));
    assert_eq!(stripe.window_origins(), ["https://checkout.stripe.com"]);
    let fake = |base: &str| windows_of(&Url::parse(base).unwrap());
    assert_eq!(fake("http://127.0.0.1:3900"), "http://127.0.0.1:3900");
    assert_eq!(fake("https://evilstripe.com"), "https://evilstripe.com");
}
