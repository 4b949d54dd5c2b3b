//! The payment window: what each step of the shopper does, and where it leads.

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::book::{Method, Payment, Status};
use super::codes::Code;
use super::{Desk, PageStep, Refusal};
use crate::engine::Answer;
use crate::scenario::ReturnQuery;

/// What the page shows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct View {
    /// What the shopper buys.
    pub(crate) item_name: String,
    /// Order of the shop.
    pub(crate) order_id: String,
    /// Won.
    pub(crate) won: u64,
    /// The only method the shop allows.
    pub(crate) only: Option<String>,
    /// Whether there is still something to press.
    pub(crate) open: bool,
    /// Where its forms may lead in the end.
    pub(crate) origins: Vec<String>,
}

impl Desk<'_> {
    /// Does a step in the window.
    pub(super) fn page(&mut self, page: &str, step: &PageStep) -> Result<Answer, Refusal> {
        let tid = self.book.tid_of_page(page).ok_or(-404)?;
        let payment = self.payment(&tid)?.clone();
        let open = payment.status.is_open();
        if open && payment.expired {
            return Ok(self.back(&payment.fail_url, Some(-723)));
        }
        match step {
            PageStep::Show => self.book.walk(&tid, Status::OpenPayment),
            // Whatever is pressed on the page of an ended payment shows that it has ended.
            _ if !open => {}
            PageStep::Pay(method) => {
                let method = match method.as_str() {
                    "CARD" => Method::Card,
                    "MONEY" => Method::Money,
                    other => return Err(Refusal::Invalid(format!("no such method: {other}"))),
                };
                self.book.walk(&tid, Status::SelectMethod);
                let token = self.book.authenticate(&tid, Some(method));
                return Ok(returned(&payment.approval_url, &[("pg_token", &token)]));
            }
            PageStep::Forge => {
                let forged = [("pg_token", "f0f0f0f0f0f0f0f0f0f0")];
                return Ok(returned(&payment.approval_url, &forged));
            }
            PageStep::Refuse => {
                self.book.walk(&tid, Status::FailAuth);
                return Ok(self.back(&payment.fail_url, Some(-780)));
            }
            PageStep::Close => {
                self.book.walk(&tid, Status::Quit);
                return Ok(self.back(&payment.cancel_url, Some(-783)));
            }
            PageStep::Expire => {
                self.book.end_early(&tid);
                return Ok(self.back(&payment.fail_url, Some(-723)));
            }
        }
        let text = serde_json::to_vec(&view(&payment, open)).expect("texts always serialize");
        Ok(Answer::json(200, text))
    }

    /// Sends the shopper back unpaid.
    fn back(&self, url: &str, code: Option<i32>) -> Answer {
        let added = self.switches().return_query == ReturnQuery::Added;
        match code.filter(|_| added) {
            None => returned(url, &[]),
            Some(number) => {
                let code = Code::bare(number).to_string();
                returned(
                    url,
                    &[("error_code", &code), ("error_message", "결제 실패")],
                )
            }
        }
    }
}

fn view(payment: &Payment, open: bool) -> View {
    let urls = [
        &payment.approval_url,
        &payment.cancel_url,
        &payment.fail_url,
    ];
    let mut origins: Vec<_> = urls
        .into_iter()
        .filter_map(|url| Url::parse(url).ok())
        .map(|url| url.origin().ascii_serialization())
        .collect();
    origins.dedup();
    View {
        item_name: payment.item_name.clone(),
        order_id: payment.order_id.clone(),
        won: payment.amount.total,
        only: payment.only.map(|method| method.name().to_owned()),
        open,
        origins,
    }
}

/// A redirect to the shop, keeping the query its URL already has.
fn returned(url: &str, pairs: &[(&str, &str)]) -> Answer {
    match Url::parse(url) {
        Ok(mut url) => {
            if !pairs.is_empty() {
                url.query_pairs_mut().extend_pairs(pairs);
            }
            Answer::redirect(303, url.as_str())
        }
        // Checked when the payment was made ready.
        Err(_) => Answer::redirect(303, url),
    }
}
