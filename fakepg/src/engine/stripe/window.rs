//! The hosted page of a session: what each step of the shopper does, and where it leads.

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::book::{Intent, SessionStatus};
use super::{Desk, Done, StripeStep, codes, told};
use crate::engine::Answer;

/// What the page shows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct View {
    /// What the shopper buys.
    pub(crate) name: String,
    /// Order of the shop.
    pub(crate) order_id: String,
    /// Won.
    pub(crate) won: u64,
    /// Whether there is still something to press.
    pub(crate) open: bool,
    /// Whether the last card was refused.
    pub(crate) refused: bool,
    /// Where its forms may lead in the end.
    pub(crate) origins: Vec<String>,
}

impl Desk<'_> {
    /// Does a step in the window.
    pub(super) fn page(&mut self, page: &str, step: StripeStep) -> Done {
        let missing = || Box::new(codes::error("resource_missing"));
        let id = self.book.of_page(page).ok_or_else(missing)?;
        let intent = self.intent(&id)?.clone();
        let open = intent.session_status == SessionStatus::Open;
        match step {
            StripeStep::Pay if open => {
                self.book.authorise(&id, self.now_ms);
                if !intent.made.manual {
                    self.charge(&id, intent.made.amount);
                }
                return Ok(home(&intent));
            }
            StripeStep::Forge if open => return Ok(home(&intent)),
            StripeStep::Close if open => {
                let to = intent.made.cancel_url.as_deref();
                return Ok(Answer::redirect(303, to.unwrap_or("/")));
            }
            StripeStep::Refuse if open => self.book.fail(&id, super::DECLINE),
            // Whatever is pressed on the page of an ended session shows that it has ended.
            _ => {}
        }
        let intent = self.intent(&id)?;
        let urls = [
            Some(&intent.made.success_url),
            intent.made.cancel_url.as_ref(),
        ];
        let origins = urls.into_iter().flatten();
        let origins = origins.filter_map(|url| Url::parse(url).ok());
        let view = View {
            name: intent.made.name.clone(),
            order_id: intent.order().to_owned(),
            won: intent.made.amount,
            open,
            refused: intent.last_error.is_some(),
            origins: origins
                .map(|url| url.origin().ascii_serialization())
                .collect(),
        };
        let view = serde_json::to_value(view).unwrap_or_default();
        Ok(told(&view))
    }
}

/// The way back, with the session's id in its place.
fn home(intent: &Intent) -> Answer {
    let url = &intent.made.success_url;
    Answer::redirect(303, &url.replace("{CHECKOUT_SESSION_ID}", &intent.session))
}
