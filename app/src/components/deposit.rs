//! The virtual account that a shopper is to pay into.

use leptos::prelude::*;
use payment::wire::DepositView;

use crate::text::{DepositWord, Lang};

/// Bank, number, amount and due date: all that a transfer needs.
#[component]
pub fn DepositAccount(
    /// The account.
    account: DepositView,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let fact = |word, value: String, testid| {
        view! {
            <div>
                <dt>{lang.deposit(word)}</dt>
                <dd data-testid=testid>{value}</dd>
            </div>
        }
    };
    let due = account.due_at.as_deref().and_then(|at| lang.due(at));
    view! {
        <dl class="deposit" data-testid="deposit">
            {fact(DepositWord::Bank, lang.bank(&account.bank), "deposit-bank")}
            {fact(DepositWord::Number, account.account_number, "deposit-number")}
            {account.holder.map(|holder| fact(DepositWord::Holder, holder, "deposit-holder"))}
            {fact(DepositWord::Amount, lang.won(account.amount), "deposit-amount")}
            {due.map(|due| fact(DepositWord::Due, due, "deposit-due"))}
        </dl>
    }
}
