//! Operators' sessions, and what is kept of what they do.

use payment::id::OrderId;
use payment::time::Millis;
use server::config::DatabaseUrl;
use server::store::console::{Action, NewAction, OperatorSession};
use server::store::open::attach;

use crate::{Db, NOW, on_both};

on_both!(
    a_session_is_found_by_its_hash_until_it_is_ended_or_swept,
    what_is_done_is_kept_before_and_after,
);

async fn a_session_is_found_by_its_hash_until_it_is_ended_or_swept(db: Db) {
    let url = DatabaseUrl::new(&db.url);
    let store = attach(&url, Millis::from_secs(20)).await.expect("attached");
    let at = |ms: u64| NOW.plus(Millis::new(ms));
    let session = |opened_at| OperatorSession {
        operator: "kim".to_owned(),
        opened_at,
        seen_at: opened_at,
    };
    let first = session(NOW);
    store.open_session("a", &first, NOW).await.unwrap();
    assert_eq!(store.session("a").await.unwrap(), Some(first.clone()));
    assert_eq!(store.session("b").await.unwrap(), None);
    store.session_seen("a", at(5)).await.unwrap();
    let seen = store.session("a").await.unwrap().map(|one| one.seen_at);
    assert_eq!(seen, Some(at(5)));
    // Another one's beginning drops what is long over.
    store
        .open_session("b", &session(at(6)), at(5))
        .await
        .unwrap();
    assert!(store.session("a").await.unwrap().is_some());
    store
        .open_session("c", &session(at(7)), at(6))
        .await
        .unwrap();
    assert_eq!(store.session("a").await.unwrap(), None);
    store.close_session("b").await.unwrap();
    store.close_session("b").await.unwrap();
    assert_eq!(store.session("b").await.unwrap(), None);
    assert!(store.session("c").await.unwrap().is_some());
}

async fn what_is_done_is_kept_before_and_after(db: Db) {
    let url = DatabaseUrl::new(&db.url);
    let store = attach(&url, Millis::from_secs(20)).await.expect("attached");
    let attempt = db.claimed("ord_1", "mug").await;
    let act = |action, order_id: Option<OrderId>, detail: &str| NewAction {
        at: NOW,
        operator: "kim".to_owned(),
        action,
        attempt: order_id.as_ref().map(|_| attempt.id),
        order_id,
        detail: detail.to_owned(),
    };
    let order = attempt.order_id.clone();
    let with_order = act(Action::Resolve, Some(order.clone()), "charged: seen '; --");
    let first = store.act(with_order).await.unwrap();
    let second = act(Action::SignIn, None, "from 192.0.2.1");
    let second = store.act(second).await.unwrap();
    assert!(second > first);
    store.acted(first, "resolved").await.unwrap();
    let all = store.actions(None, 10).await.unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|row| (row.action.as_str(), row.result.as_deref()))
        .collect();
    assert_eq!(told, [("sign_in", None), ("resolve", Some("resolved"))]);
    let of_order = store.actions(Some(&order), 10).await.unwrap();
    assert_eq!(of_order.len(), 1);
    let kept = of_order.first().expect("an action");
    assert_eq!(kept.order_id.as_deref(), Some("ord_1"));
    assert_eq!(kept.attempt, Some(attempt.id));
    assert_eq!(kept.detail, "charged: seen '; --");
    assert_eq!(store.actions(None, 1).await.unwrap().len(), 1);
}
