//! The console's first page: the limits now, and what is not final.

use leptos::prelude::*;

use super::shops::shop_webhooks;
use super::{inside, notice, table};
use crate::data::console::{Gauge, OpenPayment, Overview};
use crate::pages::page;
use crate::text::{Lang, OpsWord};

/// The console's first page.
#[component]
pub fn OverviewPage() -> impl IntoView {
    let notice = notice();
    page(move |context| {
        let seen = context.console.overview();
        let lang = context.lang;
        inside(context, notice, seen, move |data| Some(body(data, lang)))
    })
}

fn body(data: Overview, lang: Lang) -> AnyView {
    let counts = [
        (OpsWord::Unknown, data.unknown, "unknown"),
        (OpsWord::RefundsOpen, data.refunds_open, "refunds"),
        (OpsWord::WebhooksNew, data.webhooks_new, "webhooks-new"),
        (
            OpsWord::WebhooksParked,
            data.webhooks_parked,
            "webhooks-parked",
        ),
        (OpsWord::ShopWebhooks, data.shop_webhooks, "shop-webhooks"),
    ];
    let counts = counts.map(|(word, count, name)| {
        view! {
            <div class="console-count">
                <dt>{lang.ops(word)}</dt>
                <dd data-testid=name>{count}</dd>
            </div>
        }
    });
    let gauges = data.gauges.into_iter().map(|gauge| limits(gauge, lang));
    let rows: Vec<_> = data.open.into_iter().map(|one| row(one, lang)).collect();
    let more = data
        .more
        .then(|| view! { <p>{lang.ops(OpsWord::More)}</p> });
    let open = if rows.is_empty() {
        view! { <p data-testid="all-final">{lang.ops(OpsWord::AllFinal)}</p> }.into_any()
    } else {
        let heads = [
            OpsWord::Order,
            OpsWord::Status,
            OpsWord::Since,
            OpsWord::Amount,
            OpsWord::Gateway,
            OpsWord::Asks,
            OpsWord::Last,
        ];
        table(
            lang.ops(OpsWord::NotFinal),
            &heads.map(|head| lang.ops(head)),
            rows,
        )
    };
    let late = (!data.late.is_empty()).then(|| {
        view! {
            <section class="console-card" aria-labelledby="console-late">
                <h2 id="console-late">{lang.ops(OpsWord::ShopWebhooksLate)}</h2>
                {shop_webhooks(data.late, OpsWord::ShopWebhooksLate, lang)}
            </section>
        }
    });
    view! {
        <h1>{lang.ops(OpsWord::Payments)}</h1>
        <section class="console-card" aria-labelledby="console-now">
            <h2 id="console-now">{lang.ops(OpsWord::Gauges)}</h2>
            <dl class="console-counts">{counts.collect_view()}{gauges.collect_view()}</dl>
        </section>
        <section class="console-card" aria-labelledby="console-open">
            <h2 id="console-open">{lang.ops(OpsWord::NotFinal)}</h2>
            {open}
            {more}
        </section>
        {late}
    }
    .into_any()
}

fn limits(gauge: Gauge, lang: Lang) -> impl IntoView {
    let limit = gauge.limit.map_or_else(
        || lang.ops(OpsWord::NoLimit).to_owned(),
        |limit| limit.to_string(),
    );
    let answers = if gauge.silent {
        OpsWord::Silent
    } else {
        OpsWord::Answers
    };
    let gateway = gauge.gateway.clone();
    view! {
        <div class="console-count" data-testid="gauge" data-gateway=gateway>
            <dt>{gauge.gateway} " · " {lang.ops(OpsWord::InFlight)}</dt>
            <dd>{gauge.in_flight} " / " {limit}</dd>
            <dd class="console-small">
                {lang.ops(OpsWord::Circuit)} " " <code>{gauge.circuit}</code> " · " {lang.ops(answers)}
            </dd>
        </div>
    }
}

fn row(one: OpenPayment, lang: Lang) -> AnyView {
    view! {
        <tr data-testid="open-payment" data-order=one.order_id.clone()>
            <td>
                <a class="link" href=format!("/ops/orders/{}", one.order_id)>
                    <code>{format!("#{}", one.attempt)}</code>
                </a>
            </td>
            <td><code>{one.status}</code></td>
            <td>{lang.ops_age(one.age)} <span class="console-small">{one.since}</span></td>
            <td class="console-number">{lang.won(one.amount)}</td>
            <td><code>{one.gateway}</code></td>
            <td class="console-number">{one.asks}</td>
            <td class="console-told">{one.last}</td>
        </tr>
    }
    .into_any()
}
