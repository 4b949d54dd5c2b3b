//! What other shops' endpoints are told, as operators see it.

use leptos::prelude::*;

use super::table;
use crate::data::console::ShopWebhook;
use crate::text::{Lang, OpsWord};

/// A table of webhooks to shops; nothing where there are none.
pub(super) fn shop_webhooks(
    webhooks: Vec<ShopWebhook>,
    caption: OpsWord,
    lang: Lang,
) -> Option<AnyView> {
    let heads = [
        OpsWord::Order,
        OpsWord::Shop,
        OpsWord::Event,
        OpsWord::Status,
        OpsWord::Tries,
        OpsWord::Last,
        OpsWord::At,
    ];
    let rows: Vec<_> = webhooks.into_iter().map(row).collect();
    let heads = heads.map(|head| lang.ops(head));
    (!rows.is_empty()).then(|| table(lang.ops(caption), &heads, rows))
}

fn row(one: ShopWebhook) -> AnyView {
    view! {
        <tr data-testid="shop-webhook" data-status=one.status data-order=one.order_id.clone()>
            <td>
                <a class="link" href=format!("/ops/orders/{}", one.order_id)>
                    <code>{format!("#{}", one.id)}</code>
                </a>
            </td>
            <td>{one.shop}</td>
            <td><code>{one.event}</code></td>
            <td><code>{one.status}</code></td>
            <td class="console-number">{one.tries}</td>
            <td class="console-told">{one.told}</td>
            <td>{one.at}</td>
        </tr>
    }
    .into_any()
}
