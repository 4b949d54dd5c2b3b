//! The checkout's live part as people see it: a pure function of the screen, rendered by server and browser alike.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use payment::id::{GatewayName, OrderId};
use payment::time::Millis;
use payment::view::{PayAction, Progress, Stage};
use payment::wire::DepositView;

use crate::components::deposit::DepositAccount;
use crate::components::mark::Mark;
use crate::components::status::tone;
use crate::components::steps::Steps;
use crate::seed::{Notice, Returned, Screen, Seed, stage_name};
use crate::text::{Lang, Say};

/// The id of the stage's heading, which gets the focus when a result is there.
pub const HEADING_ID: &str = "stage-heading";

/// The class of the element around a stage.
pub const STAGE_CLASS: &str = "stage";

/// The signals between the live part and whoever drives it.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// What to show.
    pub screen: RwSignal<Screen>,
    /// The page clock, for the progress only.
    pub clock: RwSignal<Millis>,
    /// How often "confirm" was pressed.
    pub pressed: RwSignal<u32>,
    /// What screen readers are told.
    pub said: RwSignal<String>,
    /// The virtual account, once the page has heard of one.
    pub deposit: RwSignal<Option<DepositView>>,
}

impl Live {
    /// The signals of a page that nothing drives yet.
    #[must_use]
    pub fn new(screen: Screen) -> Self {
        Self {
            screen: RwSignal::new(screen),
            clock: RwSignal::new(Millis::ZERO),
            pressed: RwSignal::new(0),
            said: RwSignal::new(String::new()),
            deposit: RwSignal::new(None),
        }
    }
}

/// One stage: heading, text, the wait, and what may be pressed.
#[component]
pub fn StageView(
    /// What the page started from.
    seed: Seed,
    /// What to show.
    screen: Screen,
    /// The signals that move while a screen stands.
    live: Live,
) -> impl IntoView {
    let lang = seed.lang;
    let stage = screen.view.stage;
    let (heading, body) = words(&screen, &seed);
    let deposit = live
        .deposit
        .get_untracked()
        .or_else(|| seed.state.deposit.clone())
        .filter(|_| stage == Stage::AwaitingDeposit);
    view! {
        <section
            class=STAGE_CLASS
            data-testid="stage"
            data-stage=stage_name(stage)
            data-tone=tone(stage)
            aria-labelledby=HEADING_ID
        >
            <Mark stage/>
            <h1 id=HEADING_ID class="stage-heading" tabindex="-1">{heading}</h1>
            <p class="stage-body">{body}</p>
            {deposit.map(|account| view! { <DepositAccount account lang/> })}
            <NoticeLine notice=screen.notice screen lang/>
            <Wait progress=screen.view.progress clock=live.clock lang/>
            <Steps stage times=seed.times lang/>
            <Action screen seed=seed.clone() pressed=live.pressed/>
            {links(stage, &seed)}
        </section>
    }
}

/// The heading and the text of a screen.
#[must_use]
pub fn words(screen: &Screen, seed: &Seed) -> (&'static str, String) {
    let lang = seed.lang;
    if screen.complete {
        return (
            lang.say(Say::CompleteTitle),
            lang.say(Say::CompleteBody).to_owned(),
        );
    }
    let stage = screen.view.stage;
    (
        lang.heading(stage),
        lang.body(stage, seed.times.poll_interval),
    )
}

/// What is to say beside the stage; only where a new try is possible, since it speaks of one that is over.
#[component]
fn NoticeLine(notice: Option<Notice>, screen: Screen, lang: Lang) -> impl IntoView {
    let shown = screen.view.button.is_some();
    let text = notice
        .filter(|_| shown)
        .and_then(|notice| notice.text(lang));
    text.map(|text| view! { <p class="notice" data-testid="notice">{text}</p> })
}

/// How far the wait has come.
#[component]
fn Wait(progress: Option<Progress>, clock: RwSignal<Millis>, lang: Lang) -> impl IntoView {
    progress.map(|progress| {
        let elapsed = move || progress.elapsed(clock.get()).get().to_string();
        let passed = move || lang.elapsed(progress.elapsed(clock.get()));
        let left = move || lang.remaining(progress.left(clock.get()));
        view! {
            <div class="wait">
                <p class="wait-text" data-testid="wait">
                    <span class="wait-passed">{passed}</span>
                    <span class="wait-left">{left}</span>
                </p>
                <progress
                    class="wait-bar"
                    aria-label=lang.say(Say::Progress)
                    max=progress.total.get().to_string()
                    value=elapsed
                ></progress>
            </div>
        }
    })
}

/// The one control that may move money: only where the view's proof allows it.
#[component]
fn Action(screen: Screen, seed: Seed, pressed: RwSignal<u32>) -> impl IntoView {
    let lang = seed.lang;
    let (action, _proof) = screen.view.button?;
    let label = lang.pay(action, seed.amount);
    let form = match (seed.confirm.clone(), screen.complete, action) {
        (Some(returned), true, _) => {
            let label = lang.say(Say::CompleteButton).to_owned();
            let order_id = seed.order_id;
            view! { <ConfirmForm order_id returned label testid="confirm" pressed/> }.into_any()
        }
        (Some(returned), false, PayAction::ConfirmAgain) => {
            let order_id = seed.order_id.clone();
            // The same payment again, or while that gateway is in trouble another.
            let others = (seed.methods.len() > 1)
                .then(|| view! { <PayForm seed label=lang.say(Say::PayOtherwise).to_owned() quiet=true/> });
            view! {
                <ConfirmForm order_id returned label testid="pay" pressed/>
                {others}
            }
            .into_any()
        }
        (_, _, PayAction::Pay | PayAction::PayAgain | PayAction::ConfirmAgain) => {
            view! { <PayForm seed label quiet=false/> }.into_any()
        }
    };
    Some(form)
}

/// Opens a payment window; where there are several ways to pay, of the one that is chosen.
#[component]
fn PayForm(seed: Seed, label: String, quiet: bool) -> impl IntoView {
    let lang = seed.lang;
    let (look, testid) = if quiet {
        ("button button-quiet", "pay-otherwise")
    } else {
        ("button button-primary", "pay")
    };
    let method = |(at, gateway): (usize, GatewayName)| {
        view! {
            <label class="method">
                <input
                    type="radio"
                    name="gateway"
                    value=gateway.to_string()
                    checked=at == 0
                    data-testid="method"
                />
                <span>{lang.method(&gateway)}</span>
            </label>
        }
    };
    let methods = (seed.methods.len() > 1).then(|| {
        view! {
            <fieldset class="methods">
                <legend>{lang.say(Say::Methods)}</legend>
                {seed.methods.into_iter().enumerate().map(method).collect_view()}
            </fieldset>
        }
    });
    let left = seed.left.map(|left| {
        view! { <input type="hidden" name="left" value=left.to_string()/> }
    });
    view! {
        <form class="pay-form" method="post" action=format!("/checkout/{}", seed.order_id)>
            {methods} {left}
            <button class=look type="submit" data-testid=testid>
                {label}
            </button>
        </form>
    }
}

/// Confirms the payment that the return address carries: a plain form, taken over by script where there is one.
#[component]
fn ConfirmForm(
    order_id: OrderId,
    returned: Returned,
    label: String,
    testid: &'static str,
    pressed: RwSignal<u32>,
) -> impl IntoView {
    let submitted = move |event: SubmitEvent| {
        event.prevent_default();
        pressed.update(|times| *times = times.wrapping_add(1));
    };
    view! {
        <form
            class="pay-form"
            method="post"
            action=format!("/checkout/{order_id}/return/{}", returned.reference)
            on:submit=submitted
        >
            <input type="hidden" name="paymentKey" value=returned.payment_key.to_string()/>
            <input type="hidden" name="orderId" value=returned.gateway_order_id.to_string()/>
            <input type="hidden" name="amount" value=returned.amount.to_string()/>
            <button class="button button-primary" type="submit" data-testid=testid>{label}</button>
        </form>
    }
}

/// Where to go from here: what most people want next first, and plainly so. A shopper of another shop is led back to it, by
/// a press of their own: whatever stands here may be read for as long as anybody likes.
fn links(stage: Stage, seed: &Seed) -> Option<AnyView> {
    let lang = seed.lang;
    let order = (
        format!("/orders/{}", seed.order_id),
        lang.say(Say::ToOrder).to_owned(),
    );
    let link = |page: &str, name| (page.to_owned(), lang.say(name).to_owned());
    let own = |links: Vec<(String, String)>| match &seed.seller {
        None => links,
        Some(seller) => vec![(seller.back.clone(), lang.back_to(&seller.title))],
    };
    let orders = || link("/orders", Say::ToOrders);
    let links = match stage {
        Stage::Confirming | Stage::Looking => Vec::new(),
        Stage::Offer => own(Vec::new()),
        Stage::Checking | Stage::StillUnknown | Stage::NotCharged(_) => own(vec![orders()]),
        Stage::Paid
        | Stage::PartiallyRefunded
        | Stage::Refunded
        | Stage::ReturningMoney
        | Stage::AwaitingDeposit
        | Stage::ClosingAccount
        | Stage::ClosedUnpaid => {
            let mut links = own(vec![orders()]);
            let place = usize::from(seed.seller.is_some());
            links.insert(place, order);
            links
        }
        Stage::Expired => own(vec![link("/", Say::ToShop), orders()]),
    };
    // Where a payment is offered or awaited, nothing else may look like the thing to press.
    let leads = !matches!(stage, Stage::Offer | Stage::NotCharged(_) | Stage::Checking);
    let item = |(at, (to, name)): (usize, (String, String))| {
        let back = seed.seller.as_ref().is_some_and(|seller| seller.back == to);
        let look = if back && stage == Stage::Paid {
            "button button-primary"
        } else if leads && at == 0 {
            "button button-secondary"
        } else {
            "link"
        };
        let testid = back.then_some("back-to-shop");
        view! { <li><a class=look href=to data-testid=testid>{name}</a></li> }
    };
    (!links.is_empty()).then(|| {
        view! { <ul class="stage-links">{links.into_iter().enumerate().map(item).collect_view()}</ul> }
            .into_any()
    })
}
