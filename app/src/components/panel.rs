//! The development panel: puts the fake gateway into a scenario and shows its counters.

use leptos::prelude::*;

use crate::data::Panel;
use crate::text::{Lang, PanelWord};

/// The scenarios that one press sets.
const PRESETS: [&str; 10] = [
    "healthy",
    "slow_bank",
    "lost_answer",
    "busy",
    "silent",
    "decline",
    "slow_tail",
    "hang",
    "down",
    "up",
];

/// The panel; only rendered where the server has one.
#[component]
pub fn DevPanel(
    /// What to show.
    panel: Panel,
    /// Where its forms come back to.
    here: String,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let reach = if panel.reachable {
        PanelWord::Reachable
    } else {
        PanelWord::Unreachable
    };
    let switch = if panel.up {
        PanelWord::Up
    } else {
        PanelWord::Down
    };
    view! {
        <aside class="dev-panel" aria-labelledby="dev-heading" data-testid="dev-panel">
            <h2 id="dev-heading">{lang.panel(PanelWord::Title)}</h2>
            <p>{lang.panel(PanelWord::Lead)}</p>
            <p class="dev-state" data-testid="dev-state">
                {lang.panel(reach)}" · "{lang.panel(switch)}" · "{lang.millis(panel.delay_ms)}
            </p>
            <Presets here=here.clone() lang/>
            <Custom here delay_ms=panel.delay_ms lang/>
            <h3>{lang.panel(PanelWord::Scenario)}</h3>
            <pre class="dev-scenario" tabindex="0">{panel.scenario}</pre>
            <Counters counters=panel.counters lang/>
        </aside>
    }
}

/// One button a preset.
#[component]
fn Presets(here: String, lang: Lang) -> impl IntoView {
    let button = |name: &'static str| {
        view! {
            <button class="button button-dev" type="submit" name="preset" value=name data-testid=format!("preset-{name}")>
                {name.replace('_', " ")}
            </button>
        }
    };
    view! {
        <form class="dev-form" method="post" action="/dev/scenario">
            <fieldset>
                <legend>{lang.panel(PanelWord::Presets)}</legend>
                <input type="hidden" name="back" value=here/>
                <div class="dev-buttons">{PRESETS.map(button).collect_view()}</div>
            </fieldset>
        </form>
    }
}

/// Own values, all at once.
#[component]
fn Custom(here: String, delay_ms: u64, lang: Lang) -> impl IntoView {
    let fields = [
        ("delayMs", PanelWord::Delay, "120000", "1"),
        ("lossRatio", PanelWord::Loss, "1", "any"),
        ("slowTailRatio", PanelWord::SlowTail, "1", "any"),
        ("hangMs", PanelWord::Hang, "600000", "1"),
        ("declineRatio", PanelWord::Decline, "1", "any"),
    ];
    let field = |(name, label, max, step)| {
        // Only the delay is known as a number; the scenario below tells the rest.
        let value = if name == "delayMs" { delay_ms } else { 0 };
        view! {
            <label class="dev-field">
                <span>{lang.panel(label)}</span>
                <input type="number" name=name min="0" max=max step=step value=value/>
            </label>
        }
    };
    view! {
        <form class="dev-form" method="post" action="/dev/scenario">
            <fieldset>
                <legend>{lang.panel(PanelWord::Custom)}</legend>
                <input type="hidden" name="back" value=here/>
                <div class="dev-fields">{fields.map(field).collect_view()}</div>
                <button class="button button-dev" type="submit" data-testid="dev-apply">
                    {lang.panel(PanelWord::Apply)}
                </button>
            </fieldset>
        </form>
    }
}

/// The ledger's counters.
#[component]
fn Counters(counters: Vec<(String, u64)>, lang: Lang) -> impl IntoView {
    let row = |(name, count): (String, u64)| view! { <div><dt>{name}</dt><dd>{count}</dd></div> };
    view! {
        <h3>{lang.panel(PanelWord::Ledger)}</h3>
        <dl class="dev-counters" data-testid="dev-counters">{counters.into_iter().map(row).collect_view()}</dl>
    }
}

/// What the gateway's ledger says about one order.
#[component]
pub fn Truth(
    /// One line a gateway order id.
    lines: Vec<String>,
    /// The page's language.
    lang: Lang,
) -> impl IntoView {
    let empty = lines
        .is_empty()
        .then(|| view! { <p>{lang.panel(PanelWord::NoTruth)}</p> });
    let items = lines
        .into_iter()
        .map(|line| view! { <li>{line}</li> })
        .collect_view();
    view! {
        <aside class="dev-panel" aria-labelledby="truth-heading">
            <h2 id="truth-heading">{lang.panel(PanelWord::Truth)}</h2>
            {empty}
            <ul class="dev-truth" data-testid="pg-truth">{items}</ul>
        </aside>
    }
}
