//! One order as operators see it: all that is known, and what may be done.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use payment::id::OrderId;

use super::deeds::deeds;
use super::shops::shop_webhooks;
use super::{inside, notice, table};
use crate::data::console::{AttemptRow, Learned, OrderDesk, RefundRow, ShopFacts};
use crate::pages::page;
use crate::text::{Lang, OpsWord};

/// One order.
#[component]
pub fn DeskPage() -> impl IntoView {
    let order = use_params_map().with_untracked(|params| params.get("order"));
    let order = order.and_then(|order| OrderId::parse(&order).ok());
    let notice = notice();
    page(move |context| {
        let seen = context.console.order(order.clone());
        let lang = context.lang;
        inside(context, notice, seen, move |data| {
            data.map(|order| body(order, lang))
        })
    })
}

fn body(order: OrderDesk, lang: Lang) -> AnyView {
    let attempts = order.attempts.into_iter();
    let evidence: Vec<_> = order.evidence.into_iter().map(learned).collect();
    let heads = [
        OpsWord::At,
        OpsWord::Source,
        OpsWord::Event,
        OpsWord::Status,
        OpsWord::Told,
    ];
    let evidence = table(
        lang.ops(OpsWord::Evidence),
        &heads.map(|head| lang.ops(head)),
        evidence,
    );
    let id = order.order_id.to_string();
    let key = order.key;
    let refund = order.refundable.map(|left| {
        view! {
            <form class="console-form" method="post" action=format!("/ops/orders/{id}/refund")>
                <input type="hidden" name="key" value=key/>
                <label for="refund-amount">{lang.ops(OpsWord::AmountLabel)} " · " {lang.won(left)}</label>
                <input class="input" id="refund-amount" name="amount" inputmode="numeric" autocomplete="off"/>
                <label for="refund-reason">{lang.ops(OpsWord::Reason)}</label>
                <input class="input" id="refund-reason" name="reason" required=true maxlength="160"/>
                <button class="button button-quiet" type="submit" data-testid="refund">
                    {lang.ops(OpsWord::Refund)}
                </button>
            </form>
        }
    });
    let nothing = refund
        .is_none()
        .then(|| view! { <p>{lang.ops(OpsWord::NothingToRefund)}</p> });
    let shop = order.shop.map(|shop| from_shop(shop, lang));
    view! {
        <h1>{lang.ops(OpsWord::Order)}</h1>
        <section class="console-card" data-testid="desk" data-status=order.status>
            <dl class="console-counts">
                <div class="console-count"><dt>{lang.ops(OpsWord::Order)}</dt><dd><code>{id.clone()}</code></dd></div>
                <div class="console-count"><dt>{lang.ops(OpsWord::Status)}</dt><dd><code>{order.status}</code></dd></div>
                <div class="console-count"><dt>{lang.ops(OpsWord::Amount)}</dt><dd>{lang.won(order.amount)}</dd></div>
                <div class="console-count"><dt>{lang.ops(OpsWord::At)}</dt><dd>{order.created}</dd></div>
            </dl>
        </section>
        {shop}
        <section class="console-part" aria-labelledby="console-attempts">
            <h2 id="console-attempts">{lang.ops(OpsWord::Attempts)}</h2>
            {attempts.map(|attempt| view! { <Attempt attempt lang/> }).collect_view()}
        </section>
        <section class="console-card" aria-labelledby="console-refunds">
            <h2 id="console-refunds">{lang.ops(OpsWord::Refunds)}</h2>
            <ul class="console-list">{order.refunds.into_iter().map(|row| refunded(row, lang)).collect_view()}</ul>
            {refund}
            {nothing}
        </section>
        <section class="console-card" aria-labelledby="console-evidence">
            <h2 id="console-evidence">{lang.ops(OpsWord::Evidence)}</h2>
            {evidence}
        </section>
        <section class="console-card" aria-labelledby="console-deeds">
            <h2 id="console-deeds">{lang.ops(OpsWord::Deeds)}</h2>
            {deeds(order.deeds, lang)}
        </section>
    }
    .into_any()
}

/// Whose an order of another shop is, and what that shop is told of it.
fn from_shop(shop: ShopFacts, lang: Lang) -> impl IntoView {
    view! {
        <section class="console-card" data-testid="desk-shop" aria-labelledby="console-shop">
            <h2 id="console-shop">{lang.ops(OpsWord::Shop)}</h2>
            <dl class="console-counts">
                <div class="console-count"><dt>{lang.ops(OpsWord::Shop)}</dt><dd>{shop.title}</dd></div>
                <div class="console-count">
                    <dt>{lang.ops(OpsWord::ShopReference)}</dt>
                    <dd><code>{shop.reference}</code></dd>
                </div>
            </dl>
            {shop_webhooks(shop.webhooks, OpsWord::ToldToShop, lang)}
        </section>
    }
}

/// One attempt with what may be done about it.
#[component]
fn Attempt(attempt: AttemptRow, lang: Lang) -> impl IntoView {
    let id = attempt.attempt;
    let won = |amount: Option<_>| amount.map(|amount| lang.won(amount)).unwrap_or_default();
    let facts = [
        (OpsWord::Gateway, attempt.gateway),
        (OpsWord::GatewayOrder, attempt.gateway_order_id),
        (OpsWord::PaymentKey, attempt.payment_key),
        (OpsWord::Charged, won(attempt.charged)),
        (OpsWord::GivenBack, lang.won(attempt.given_back)),
        (OpsWord::NextLook, attempt.next_look.unwrap_or_default()),
    ];
    let facts = facts
        .into_iter()
        .filter(|(_, fact)| !fact.is_empty())
        .map(|(word, fact)| {
            view! { <div class="console-count"><dt>{lang.ops(word)}</dt><dd><code>{fact}</code></dd></div> }
        });
    let ask = attempt.can_ask.then(|| {
        view! {
            <form method="post" action=format!("/ops/attempts/{id}/ask")>
                <button class="button button-quiet" type="submit" data-testid="ask">
                    {lang.ops(OpsWord::AskNow)}
                </button>
            </form>
        }
    });
    let resolve = attempt
        .can_resolve
        .then(|| view! { <Resolve id is_over=attempt.is_over lang/> });
    view! {
        <article class="console-card" data-testid="attempt" data-status=attempt.status>
            <h3>
                {attempt.number} ". " <code>{attempt.status}</code> " " <code>{attempt.reason}</code>
                <span class="console-small">{format!(" #{id}")}</span>
            </h3>
            <dl class="console-counts">{facts.collect_view()}</dl>
            {ask}
            {resolve}
        </article>
    }
}

/// Ends a doubt.
#[component]
fn Resolve(id: i64, is_over: bool, lang: Lang) -> impl IntoView {
    let early = (!is_over).then(|| {
        view! {
            <label class="console-choice">
                <input type="checkbox" name="early" value="1"/>
                <span>{lang.ops(OpsWord::Early)}</span>
            </label>
        }
    });
    view! {
        <form class="console-form" method="post" action=format!("/ops/attempts/{id}/resolve")>
            <fieldset class="console-choices">
                <legend>{lang.ops(OpsWord::Resolve)}</legend>
                <p class="console-small">{lang.ops(OpsWord::ResolveLead)}</p>
                <label class="console-choice">
                    <input type="radio" name="word" value="charged" required=true/>
                    <span>{lang.ops(OpsWord::WasCharged)}</span>
                </label>
                <label class="console-choice">
                    <input type="radio" name="word" value="not_charged" required=true/>
                    <span>{lang.ops(OpsWord::WasNotCharged)}</span>
                </label>
                {early}
            </fieldset>
            <label for=format!("reason-{id}")>{lang.ops(OpsWord::Reason)}</label>
            <textarea class="input" id=format!("reason-{id}") name="reason" rows="2" required=true maxlength="1000"></textarea>
            <button class="button button-quiet" type="submit" data-testid="resolve">
                {lang.ops(OpsWord::Resolve)}
            </button>
        </form>
    }
}

fn learned(row: Learned) -> AnyView {
    view! {
        <tr>
            <td class="console-number">{row.at}</td>
            <td><code>{row.source}</code></td>
            <td><code>{row.event}</code></td>
            <td><code>{row.status}</code></td>
            <td class="console-told">{row.told}</td>
        </tr>
    }
    .into_any()
}

fn refunded(row: RefundRow, lang: Lang) -> impl IntoView {
    view! {
        <li data-testid="refund-row" data-status=row.status>
            {lang.won(row.amount)} " · " <code>{row.status}</code> " · " {row.reason}
            <span class="console-small">" " {row.asked}</span>
        </li>
    }
}
