//! What goes back of an order: the refunds asked for, and the form that asks for one.

use leptos::prelude::*;
use payment::money::Won;

use crate::data::{CancelOffer, RefundLine};
use crate::text::{Lang, Word};

/// The refunds of an order, oldest first; nothing where there is none.
#[component]
pub fn Refunds(
    /// The refunds, oldest first.
    refunds: Vec<RefundLine>,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let entry = |refund: RefundLine| {
        view! {
            <li class="refund" data-testid="refund" data-status=refund.status.as_str()>
                <span class="refund-amount">{lang.won(refund.amount)}</span>
                <span class="refund-status">{lang.refund(refund.status)}</span>
                <span class="refund-asked">{refund.asked}</span>
            </li>
        }
    };
    (!refunds.is_empty()).then(|| {
        view! {
            <section class="refunds" aria-labelledby="refunds-heading">
                <h2 id="refunds-heading">{lang.word(Word::RefundsTitle)}</h2>
                <ul class="refunds-list">{refunds.into_iter().map(entry).collect_view()}</ul>
            </section>
        }
    })
}

/// The form that cancels an order. Its key makes a double click one wish.
#[component]
pub fn CancelOrder(
    /// Where the order's page is.
    here: String,
    /// What it offers.
    offer: CancelOffer,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let lead = if offer.amount == Won::ZERO {
        lang.word(Word::CloseLead).to_owned()
    } else {
        lang.cancel_lead(offer.amount)
    };
    view! {
        <section class="cancel" aria-labelledby="cancel-heading">
            <h2 id="cancel-heading">{lang.word(Word::CancelTitle)}</h2>
            <p>{lead}</p>
            <form method="post" action=here>
                <input type="hidden" name="key" value=offer.key/>
                <button class="button button-quiet" type="submit" data-testid="cancel">
                    {lang.word(Word::CancelButton)}
                </button>
            </form>
        </section>
    }
}
