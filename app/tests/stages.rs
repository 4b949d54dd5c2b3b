//! What each stage of the checkout looks like as HTML: the page without script, and the first picture in the browser.

use app::components::stage::{Live, StageView};
use app::seed::{Notice, Returned, Screen, Seed, stage_name};
use app::text::Lang;
use leptos::prelude::*;
use payment::attempt::AttemptStatus;
use payment::id::{AttemptReference, GatewayName, GatewayOrderId, OrderId, PaymentKey};
use payment::money::Won;
use payment::order::OrderStatus;
use payment::reach::{NotSent, Reach, Reason};
use payment::time::{Millis, PageTimes};
use payment::view::{PayAction, Progress, Stage, View};
use payment::wire::{AttemptView, OrderState, ProblemCode};

fn state(
    order: OrderStatus,
    attempt: Option<(AttemptStatus, Option<Reason>)>,
    payable: bool,
) -> OrderState {
    let view = |(status, reason)| AttemptView {
        number: 1,
        status,
        reach: match reason {
            Some(Reason::NotSent(_)) => Reach::NotSent,
            _ => Reach::Answered,
        },
        reason,
    };
    OrderState {
        order_id: OrderId::parse("ord_1").expect("a valid value"),
        status: order,
        attempt: attempt.map(view),
        payable,
        poll_after_ms: 2_000,
        deposit: None,
        closed_unpaid: false,
    }
}

fn ready() -> OrderState {
    state(
        OrderStatus::Pending,
        Some((AttemptStatus::Ready, None)),
        true,
    )
}

fn failed(reason: Reason) -> OrderState {
    state(
        OrderStatus::Pending,
        Some((AttemptStatus::Failed, Some(reason))),
        true,
    )
}

fn seed(lang: Lang, state: OrderState) -> Seed {
    Seed {
        order_id: OrderId::parse("ord_1").expect("a valid value"),
        lang,
        amount: Won::new(33_000).expect("a valid value"),
        times: PageTimes::DEFAULT,
        state,
        confirming_for: None,
        confirm: None,
        start: false,
        notice: None,
        methods: vec![GatewayName::parse("toss").expect("a valid value")],
        left: None,
        seller: None,
    }
}

fn returned() -> Returned {
    Returned {
        payment_key: PaymentKey::parse("pk_<1>\"").expect("a valid value"),
        gateway_order_id: GatewayOrderId::parse("ord_1-2").expect("a valid value"),
        amount: Won::new(33_000).expect("a valid value"),
        reference: AttemptReference::parse("ref_1").expect("a valid value"),
    }
}

fn html_of(seed: &Seed, screen: Screen) -> String {
    Owner::new().with(|| {
        let live = Live::new(screen);
        view! { <StageView seed=seed.clone() screen live/> }.to_html()
    })
}

fn html(seed: &Seed) -> String {
    html_of(seed, seed.screen())
}

/// One view of each stage, and every reason that "not charged" can have.
fn every_view() -> Vec<View> {
    let progress = Some(Progress {
        begun: Millis::ZERO,
        already: Millis::new(4_000),
        total: Millis::from_secs(65),
    });
    let waiting = |stage| View {
        stage,
        progress,
        button: None,
    };
    let not_charged = |reason| View::of_known(&failed(reason));
    let mut views = vec![
        View::of_known(&ready()),
        waiting(Stage::Confirming),
        waiting(Stage::Checking),
        waiting(Stage::ReturningMoney),
        View::plain(Stage::Looking),
        View::plain(Stage::Paid),
        View::plain(Stage::PartiallyRefunded),
        View::plain(Stage::Refunded),
        View::plain(Stage::ReturningMoney),
        View::plain(Stage::AwaitingDeposit),
        View::plain(Stage::ClosingAccount),
        waiting(Stage::ClosingAccount),
        View::plain(Stage::ClosedUnpaid),
        View::plain(Stage::NotCharged(None)),
        View::plain(Stage::StillUnknown),
        View::plain(Stage::Expired),
    ];
    views.extend(Reason::all().map(not_charged));
    views
}

fn pay_controls(html: &str) -> usize {
    html.matches("data-testid=\"pay\"").count() + html.matches("data-testid=\"confirm\"").count()
}

#[test]
fn a_pay_control_stands_exactly_where_the_view_has_a_button() {
    for lang in Lang::ALL {
        for view in every_view() {
            for confirm in [None, Some(returned())] {
                let seed = Seed {
                    confirm,
                    ..seed(lang, ready())
                };
                let screen = Screen {
                    view,
                    complete: false,
                    notice: None,
                };
                let html = html_of(&seed, screen);
                let wanted = usize::from(view.button.is_some());
                assert_eq!(pay_controls(&html), wanted, "{view:?}: {html}");
                assert_eq!(html.matches("<button").count(), wanted, "{view:?}: {html}");
            }
        }
    }
}

#[test]
fn every_stage_names_itself_has_words_and_no_inline_style() {
    for lang in Lang::ALL {
        for view in every_view() {
            let seed = seed(lang, ready());
            let html = html_of(
                &seed,
                Screen {
                    view,
                    complete: false,
                    notice: None,
                },
            );
            let stage = format!("data-stage=\"{}\"", stage_name(view.stage));
            assert!(html.contains(&stage), "{html}");
            assert!(!html.contains("style="), "{html}");
            assert_eq!(html.matches("<h1").count(), 1, "{html}");
            assert!(html.contains(lang.heading(view.stage)), "{html}");
            let body = lang.body(view.stage, PageTimes::DEFAULT.poll_interval);
            assert!(body.len() > 10 && !lang.status(view.stage).is_empty());
            assert_eq!(
                html.contains("<progress"),
                view.progress.is_some(),
                "{html}"
            );
        }
    }
}

#[test]
fn an_authenticated_payment_waits_in_a_plain_form_until_its_confirm_begins() {
    let seed = Seed {
        confirm: Some(returned()),
        start: true,
        ..seed(Lang::En, ready())
    };
    let html = html(&seed);
    assert!(html.contains("method=\"post\""), "{html}");
    assert!(
        html.contains("action=\"/checkout/ord_1/return/ref_1\""),
        "{html}"
    );
    assert!(html.contains("data-testid=\"confirm\"") && html.contains("Complete the payment"));
    assert!(
        html.contains("name=\"orderId\" value=\"ord_1-2\""),
        "{html}"
    );
    assert!(html.contains("name=\"amount\" value=\"33000\""), "{html}");
    assert!(html.contains("value=\"pk_&lt;1&gt;&quot;\""), "{html}");
    assert!(!html.contains("data-testid=\"pay\""), "{html}");
}

#[test]
fn an_authenticated_payment_is_not_completed_while_another_attempt_is_in_doubt() {
    let doubt = state(
        OrderStatus::Pending,
        Some((AttemptStatus::Unknown, None)),
        false,
    );
    for confirming_for in [None, Some(Millis::ZERO), Some(Millis::from_secs(90))] {
        let seed = Seed {
            confirm: Some(returned()),
            start: true,
            confirming_for,
            ..seed(Lang::Ko, doubt.clone())
        };
        assert_eq!(pay_controls(&html(&seed)), 0);
    }
}

#[test]
fn after_a_proven_not_sent_the_same_payment_may_be_confirmed_again() {
    let refused = failed(Reason::NotSent(NotSent::Cap));
    let (action, _) = View::of_known(&refused).button.unwrap();
    assert_eq!(action, PayAction::ConfirmAgain);
    let with = Seed {
        confirm: Some(returned()),
        ..seed(Lang::Ko, refused.clone())
    };
    let html_with = html(&with);
    assert!(
        html_with.contains("action=\"/checkout/ord_1/return/ref_1\""),
        "{html_with}"
    );
    assert!(html_with.contains("청구된 금액은 없어요"), "{html_with}");
    let html_without = html(&seed(Lang::Ko, refused));
    assert!(
        html_without.contains("action=\"/checkout/ord_1\""),
        "{html_without}"
    );
}

#[test]
fn a_notice_is_only_said_where_a_new_try_is_possible() {
    let closed = Some(Notice::of_window("PAY_PROCESS_CANCELED"));
    let offer = html(&Seed {
        notice: closed,
        ..seed(Lang::En, ready())
    });
    assert!(
        offer.contains("You closed the payment window. Nothing was charged."),
        "{offer}"
    );
    let doubt = state(
        OrderStatus::Pending,
        Some((AttemptStatus::Unknown, None)),
        false,
    );
    let waiting = html(&Seed {
        notice: closed,
        ..seed(Lang::En, doubt)
    });
    assert!(!waiting.contains("Nothing was charged"), "{waiting}");
}

#[test]
fn a_seed_survives_the_way_into_the_page_and_back() {
    let notices = ProblemCode::ALL.iter().copied().map(Notice::Refused);
    for notice in notices.chain([
        Notice::WindowClosed,
        Notice::WindowRefused,
        Notice::WindowNotOpened,
    ]) {
        let sent = Seed {
            confirm: Some(returned()),
            confirming_for: Some(Millis::new(1_500)),
            notice: Some(notice),
            ..seed(Lang::En, failed(Reason::PgRefused))
        };
        let text = serde_json::to_string(&sent).unwrap();
        assert_eq!(serde_json::from_str::<Seed>(&text).unwrap(), sent);
    }
}

#[test]
fn a_choice_between_ways_to_pay_is_offered_only_where_there_is_one() {
    let both = |state| Seed {
        methods: ["toss", "kakaopay", "new_one"]
            .map(|name| GatewayName::parse(name).expect("a valid value"))
            .to_vec(),
        left: Some(AttemptReference::parse("ref_1").expect("a valid value")),
        ..seed(Lang::En, state)
    };
    let choice = html(&both(ready()));
    for part in [
        "<legend>How to pay</legend>",
        "KakaoPay",
        "new_one",
        "name=\"left\" value=\"ref_1\"",
    ] {
        assert!(choice.contains(part), "{part}: {choice}");
    }
    assert_eq!(choice.matches("type=\"radio\"").count(), 3, "{choice}");
    assert_eq!(choice.matches(" checked").count(), 1, "the first: {choice}");
    let single = html(&seed(Lang::En, ready()));
    assert!(!single.contains("radio"), "{single}");
    // While nobody knows, no way to pay is offered.
    let doubt = state(
        OrderStatus::Pending,
        Some((AttemptStatus::Unknown, None)),
        false,
    );
    let waiting = html(&both(doubt));
    assert!(!waiting.contains("<form"), "{waiting}");
    // Nothing was sent: the same payment again, or another way.
    let again = html(&Seed {
        confirm: Some(returned()),
        ..both(failed(Reason::NotSent(NotSent::Circuit)))
    });
    assert!(again.contains("data-testid=\"pay\""), "{again}");
    assert!(again.contains("data-testid=\"pay-otherwise\""), "{again}");
}
