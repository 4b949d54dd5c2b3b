//! What an order consists of and costs.

use leptos::prelude::*;

use crate::components::art::Art;
use crate::data::{Line, OrderPage};
use crate::text::{Lang, Word};

/// The lines of an order, their total and its number.
#[component]
pub fn Summary(
    /// The order.
    order: OrderPage,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let lines = order
        .lines
        .into_iter()
        .map(|line| view! { <SummaryLine line lang/> })
        .collect_view();
    let seller = order.seller.map(|seller| {
        view! {
            <div>
                <dt>{lang.word(Word::Seller)}</dt>
                <dd data-testid="seller">{seller.title}</dd>
            </div>
        }
    });
    view! {
        <section class="summary" aria-labelledby="summary-heading">
            <h2 id="summary-heading">{lang.word(Word::SummaryTitle)}</h2>
            <ul class="summary-lines">{lines}</ul>
            <dl class="summary-facts">
                <div class="summary-total">
                    <dt>{lang.word(Word::Total)}</dt>
                    <dd data-testid="total">{lang.won(order.amount)}</dd>
                </div>
                {seller}
                <div>
                    <dt>{lang.word(Word::OrderNumber)}</dt>
                    <dd class="code">{order.order_id.to_string()}</dd>
                </div>
                <div>
                    <dt>{lang.word(Word::OrderedAt)}</dt>
                    <dd>{order.created}</dd>
                </div>
            </dl>
        </section>
    }
}

/// One line.
#[component]
fn SummaryLine(line: Line, lang: Lang) -> impl IntoView {
    let sum = line.price.times(line.quantity).unwrap_or(line.price);
    view! {
        <li class="summary-line">
            <Art sku=line.sku/>
            <span class="summary-name">{line.name}" × "{line.quantity}</span>
            <span class="summary-price">{lang.won(sum)}</span>
        </li>
    }
}
