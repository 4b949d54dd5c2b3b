//! The engine in virtual time.

use serde_json::{Value, json};

use super::*;

const START_MS: u64 = 1_790_903_700_000;

/// An engine and its clock, in milliseconds from the start.
struct Bench {
    engine: Engine,
    now_ms: u64,
}

impl Bench {
    fn new(scenario: Value) -> Self {
        let mut bench = Self {
            engine: Engine::new("sk", 1, START_MS),
            now_ms: START_MS,
        };
        bench.set(scenario);
        bench
    }

    fn set(&mut self, scenario: Value) {
        let text = scenario.to_string();
        self.engine
            .set_scenario(Scenario::from_json(text.as_bytes()).expect("a scenario"));
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.now_ms = START_MS + millis;
        self
    }

    fn payment(&mut self, order: &str) -> String {
        let (order_id, order_name) = (order.to_owned(), String::new());
        let new = NewPayment {
            order_id,
            order_name,
            amount: 1_000,
            method: Method::Card,
        };
        self.engine.authenticate(Gateway::Toss, new, self.now_ms)
    }

    fn confirm(&mut self, payment_key: &str, order: &str, key: Option<&str>) -> (CallId, Next) {
        let body = json!({"paymentKey": payment_key, "orderId": order, "amount": 1_000});
        let mut call = Call::new(Gateway::Toss, Target::Confirm).authorized("sk");
        call.body = body.to_string().into();
        call.idempotency_key = key.map(str::to_owned);
        self.engine.receive(call, self.now_ms)
    }

    fn buy(&mut self, order: &str) -> Next {
        let payment_key = self.payment(order);
        self.confirm(&payment_key, order, None).1
    }

    fn resume(&mut self, id: CallId) -> Next {
        self.engine.resume(id, self.now_ms)
    }

    fn tick(&mut self) -> Vec<Webhook> {
        self.engine.tick(self.now_ms)
    }
}

fn status(next: &Next) -> u16 {
    match next {
        Next::Answer(answer) => answer.status,
        other => panic!("no answer but {other:?}"),
    }
}

fn told(webhook: &Webhook) -> String {
    let body: Value = serde_json::from_slice(&webhook.body).expect("JSON");
    body["data"]["status"]
        .as_str()
        .expect("a status")
        .to_owned()
}

#[test]
fn a_delayed_call_waits_and_waking_it_early_changes_nothing() {
    let mut bench = Bench::new(json!({"delayMs": 500}));
    let payment_key = bench.payment("order_1");
    let (id, next) = bench.confirm(&payment_key, "order_1", None);
    assert_eq!(
        next,
        Next::Wait {
            until_ms: START_MS + 500
        }
    );
    assert_eq!(bench.at(499).resume(id), next);
    assert_eq!(bench.engine.ledger().orders["order_1"].charges, 0);
    assert_eq!(status(&bench.at(500).resume(id)), 200);
    assert_eq!(bench.resume(id), Next::Gone, "it is over");
}

#[test]
fn a_call_that_began_before_the_stop_is_held_unbooked_until_it_is_lifted() {
    let mut bench = Bench::new(json!({"delayMs": 100}));
    let payment_key = bench.payment("order_1");
    let (id, _) = bench.confirm(&payment_key, "order_1", None);
    bench.set(json!({"stop": true}));
    assert_eq!(bench.at(200).resume(id), Next::Hold);
    assert!(
        !bench.engine.hang_up(id),
        "its work began, so it goes on without its caller"
    );
    assert_eq!(bench.engine.ledger().orders["order_1"].charges, 0);
    bench.set(json!({}));
    assert_eq!(status(&bench.resume(id)), 200);
}

#[test]
fn a_payment_expires_at_the_end_of_its_window_and_not_while_it_is_confirmed() {
    let mut bench = Bench::new(json!({"delayMs": 700_000}));
    let (left, confirmed) = (bench.payment("order_1"), bench.payment("order_2"));
    let (id, _) = bench.at(599_999).confirm(&confirmed, "order_2", None);
    assert_eq!(bench.engine.next_due(), Some(START_MS + 600_000));
    assert!(bench.tick().is_empty());
    let expired = bench.at(600_000).tick();
    assert_eq!(expired.iter().map(told).collect::<Vec<_>>(), ["EXPIRED"]);
    assert_eq!(bench.engine.ledger().payments[&left].status, "EXPIRED");
    assert_eq!(bench.engine.next_due(), None);
    assert_eq!(status(&bench.at(1_299_999).resume(id)), 200);
}

#[test]
fn a_confirm_that_fails_past_the_window_leaves_an_expired_payment() {
    let mut bench = Bench::new(json!({"hang": {"ms": 700_000}, "error": {"status": 500}}));
    let payment_key = bench.payment("order_1");
    let (id, _) = bench.confirm(&payment_key, "order_1", None);
    assert_eq!(status(&bench.at(700_000).resume(id)), 500);
    assert_eq!(told(&bench.tick()[0]), "EXPIRED");
}

#[test]
fn the_idempotency_key_is_held_until_the_answer_leaves_and_not_only_until_the_booking() {
    let mut bench = Bench::new(json!({"hang": {"when": "after", "ms": 1_000}}));
    let payment_key = bench.payment("order_1");
    let (id, next) = bench.confirm(&payment_key, "order_1", Some("k"));
    assert_eq!(
        next,
        Next::Wait {
            until_ms: START_MS + 1_000
        }
    );
    assert_eq!(bench.engine.ledger().keys["k"].charges, 1);
    let (_, busy) = bench.at(500).confirm(&payment_key, "order_1", Some("k"));
    assert_eq!(status(&busy), 409);
    assert!(!bench.engine.hang_up(id), "booked is booked");
    assert_eq!(status(&bench.at(1_000).resume(id)), 200);
    let (_, replay) = bench.confirm(&payment_key, "order_1", Some("k"));
    assert_eq!(status(&replay), 200);
}

#[test]
fn two_payments_of_one_order_at_the_same_time_give_one_charge() {
    let mut bench = Bench::new(json!({"delayMs": 100}));
    let (one, two) = (bench.payment("order_1"), bench.payment("order_1"));
    let (first, _) = bench.confirm(&one, "order_1", None);
    let (second, _) = bench.confirm(&two, "order_1", None);
    assert_eq!(status(&bench.at(100).resume(first)), 200);
    assert_eq!(status(&bench.resume(second)), 400);
    assert_eq!(bench.engine.ledger().orders["order_1"].charges, 1);
}

#[test]
fn a_rate_limit_counts_by_the_second() {
    let mut bench = Bench::new(json!({"rateLimit": 2}));
    let answers: Vec<_> = (0..3)
        .map(|n| status(&bench.buy(&format!("order_{n}"))))
        .collect();
    assert_eq!(answers, [200, 200, 429]);
    assert_eq!(status(&bench.at(1_000).buy("order_4")), 200);
}

#[test]
fn calls_held_by_a_stop_do_not_use_up_the_contract_limit() {
    let mut bench = Bench::new(json!({"stop": true}));
    let held: Vec<_> = (0..3)
        .map(|n| {
            let order = format!("order_{n}");
            let payment_key = bench.payment(&order);
            bench.confirm(&payment_key, &order, None).0
        })
        .collect();
    bench.set(json!({"contractLimit": 2, "delayMs": 50}));
    let next: Vec<_> = held.into_iter().map(|id| bench.resume(id)).collect();
    assert!(matches!(next[..2], [Next::Wait { .. }, Next::Wait { .. }]));
    assert_eq!(status(&next[2]), 429);
    assert_eq!(bench.engine.ledger().peak_in_flight.confirm, 3);
}

#[test]
fn the_same_seed_and_calls_give_the_same_run_and_switches_do_not_shift_each_other() {
    let run = |scenario: Value| {
        let mut bench = Bench::new(scenario);
        (0..50)
            .map(|n| matches!(bench.buy(&format!("order_{n}")), Next::Reset))
            .collect::<Vec<_>>()
    };
    let losses = run(json!({"seed": 9, "loss": {"ratio": 0.3}}));
    assert!(losses.contains(&true) && losses.contains(&false));
    assert_eq!(losses, run(json!({"seed": 9, "loss": {"ratio": 0.3}})));
    let webhooks = json!({"drop": 0.5, "delayMs": {"mean": 10}});
    let more = json!({"seed": 9, "loss": {"ratio": 0.3}, "decline": {"ratio": 0.5},
                      "webhooks": webhooks});
    assert_eq!(losses, run(more));
}

#[test]
fn failed_webhooks_come_again_and_a_lone_reordered_one_comes_late() {
    let mut bench = Bench::new(json!({"webhooks": {"resend": {}}}));
    assert_eq!(status(&bench.buy("order_1")), 200);
    let mut due = bench.tick();
    let webhook = due.pop().expect("one");
    bench.engine.webhook_tried(webhook, false, bench.now_ms);
    assert_eq!(bench.engine.next_due(), Some(START_MS + 60_000));
    let again = bench.at(60_000).tick().pop().expect("one");
    assert_eq!(again.resends, 1);
    bench.engine.webhook_tried(again, true, bench.now_ms);
    assert_eq!(bench.engine.next_due(), None);

    bench.set(json!({"webhooks": {"reorder": 1}}));
    assert_eq!(status(&bench.buy("order_2")), 200);
    assert!(bench.tick().is_empty());
    assert_eq!(bench.at(62_000).tick().len(), 1);
}

#[test]
fn a_reset_of_the_ledger_keeps_calls_in_flight_counted() {
    let mut bench = Bench::new(json!({"delayMs": 100}));
    let payment_key = bench.payment("order_1");
    let (id, _) = bench.confirm(&payment_key, "order_1", None);
    bench.engine.reset_ledger();
    assert_eq!(bench.engine.ledger().peak_in_flight.confirm, 1);
    assert_eq!(status(&bench.at(100).resume(id)), 200);
    let ledger = bench.engine.ledger();
    assert_eq!(
        (
            ledger.calls.confirm.received,
            ledger.orders["order_1"].charges
        ),
        (0, 1)
    );
}

#[test]
fn a_gateway_that_is_down_counts_nothing_and_delays_without_end_are_no_overflow() {
    let mut bench = Bench::new(json!({"up": false}));
    assert_eq!(bench.buy("order_1"), Next::Reset);
    assert_eq!(bench.engine.ledger().calls.confirm.received, 0);
    let endless = json!({"hang": {"ms": u64::MAX}, "delayMs": u64::MAX, "confirmWindowMs": u64::MAX,
                         "webhooks": {"delayMs": u64::MAX}});
    bench.set(endless);
    assert_eq!(bench.buy("order_2"), Next::Wait { until_ms: u64::MAX });
    assert!(bench.tick().is_empty());
}

impl Bench {
    fn kakaopay(&mut self, asked: KakaoPayCall, body: Value) -> (CallId, Next) {
        let mut call = Call::new(Gateway::KakaoPay, Target::KakaoPay(asked));
        call.authorization = Some("SECRET_KEY DEV_fake".to_owned());
        call.body = body.to_string().into();
        self.engine.receive(call, self.now_ms)
    }

    /// Opens and authenticates a payment of 1,000 won; gives the body that approves it.
    fn ready(&mut self, order: &str) -> Value {
        let url = "http://shop.test/";
        let body = json!({"cid": "TC0ONETIME", "partner_order_id": order, "partner_user_id": "u",
                          "item_name": "x", "quantity": 1, "total_amount": 1_000,
                          "tax_free_amount": 0, "approval_url": url, "cancel_url": url,
                          "fail_url": url});
        let base = String::new();
        let opened = match self.kakaopay(KakaoPayCall::Ready { base }, body).1 {
            Next::Answer(answer) => serde_json::from_slice::<Value>(&answer.body).expect("JSON"),
            other => panic!("no answer but {other:?}"),
        };
        let token = self.engine.authenticate_ready(order, 1_000, self.now_ms);
        json!({"cid": "TC0ONETIME", "tid": opened["tid"], "partner_order_id": order,
               "partner_user_id": "u", "pg_token": token.expect("a token")})
    }
}

#[test]
fn kakaopays_platform_answers_after_eleven_seconds_and_the_bank_after_twenty() {
    let mut bench = Bench::new(json!({"delayMs": 20_000}));
    let body = bench.ready("order_1");
    let (id, next) = bench.kakaopay(KakaoPayCall::Approve, body.clone());
    let until_ms = START_MS + 11_000;
    assert_eq!(next, Next::Wait { until_ms });
    let given_up = bench.at(11_000).resume(id);
    assert_eq!(status(&given_up), 500);
    assert_eq!(bench.engine.next_due(), Some(START_MS + 20_000));
    let (_, again) = bench.at(19_999).kakaopay(KakaoPayCall::Approve, body);
    assert_eq!(status(&again), 400);
    assert!(bench.tick().is_empty());
    assert_eq!(bench.engine.order("order_1").charges, 0);
    assert!(bench.at(20_000).tick().is_empty(), "there are no webhooks");
    assert_eq!(bench.engine.order("order_1").charges, 1);
    assert_eq!(bench.resume(id), Next::Gone);
}

#[test]
fn a_kakaopay_payment_lives_fifteen_minutes_from_its_opening() {
    let mut bench = Bench::new(json!({}));
    let (in_time, late) = (bench.ready("order_1"), bench.ready("order_2"));
    assert_eq!(bench.engine.next_due(), Some(START_MS + 900_000));
    let (_, paid) = bench.at(899_999).kakaopay(KakaoPayCall::Approve, in_time);
    assert_eq!(status(&paid), 200);
    let (_, over) = bench.at(900_000).kakaopay(KakaoPayCall::Approve, late);
    assert_eq!(status(&over), 400);
    assert_eq!(bench.engine.order("order_2").charges, 0);
    assert_eq!(bench.engine.next_due(), None);
}
