//! The products' pictures, drawn in the page so that they follow its colours.

use leptos::prelude::*;
use payment::id::Sku;

/// The picture of a product.
#[component]
pub fn Art(
    /// Which.
    sku: Sku,
) -> impl IntoView {
    view! {
        <svg
            class="art"
            viewBox="0 0 120 120"
            aria-hidden="true"
            focusable="false"
            inner_html=shapes(sku.as_str())
        ></svg>
    }
}

/// What is drawn; the classes get their colours from the style sheet.
fn shapes(sku: &str) -> &'static str {
    match sku {
        "mug" => MUG,
        "notebook" => NOTEBOOK,
        "candle" => CANDLE,
        "tote" => TOTE,
        "teapot" => TEAPOT,
        "poster" => POSTER,
        _ => PARCEL,
    }
}

const MUG: &str = r#"<ellipse class="art-shade" cx="58" cy="98" rx="38" ry="5"/><path class="art-line" d="M80 48h8a13 13 0 0 1 0 26h-9"/><path class="art-a" d="M32 38h50v38a19 19 0 0 1-19 19H51a19 19 0 0 1-19-19z"/><path class="art-b" d="M32 60h50v9H32z"/><ellipse class="art-c" cx="57" cy="38" rx="25" ry="6"/><path class="art-line" d="M48 26c-4-5 4-7 0-12M62 26c-4-5 4-7 0-12"/>"#;
const NOTEBOOK: &str = r#"<ellipse class="art-shade" cx="60" cy="101" rx="36" ry="5"/><rect class="art-c" x="36" y="22" width="54" height="76" rx="4"/><rect class="art-a" x="30" y="20" width="54" height="76" rx="5"/><path class="art-b" d="M30 25a5 5 0 0 1 5-5h6v76h-6a5 5 0 0 1-5-5z"/><rect class="art-c" x="50" y="34" width="24" height="14" rx="2"/><path class="art-line" d="M76 20v76"/>"#;
const CANDLE: &str = r#"<ellipse class="art-shade" cx="60" cy="101" rx="34" ry="5"/><rect class="art-a" x="34" y="54" width="52" height="46" rx="7"/><ellipse class="art-c" cx="60" cy="55" rx="26" ry="6"/><rect class="art-b" x="42" y="70" width="36" height="18" rx="2"/><path class="art-line" d="M60 54V42"/><path class="art-d" d="M60 16c9 11 11 16 11 20a11 11 0 0 1-22 0c0-5 5-9 11-20z"/>"#;
const TOTE: &str = r#"<ellipse class="art-shade" cx="60" cy="102" rx="36" ry="5"/><path class="art-line" d="M44 50V32a16 16 0 0 1 32 0v18"/><path class="art-a" d="M30 44h60l6 52a5 5 0 0 1-5 5H29a5 5 0 0 1-5-5z"/><path class="art-b" d="M46 62h28v22H46z"/><path class="art-line" d="M54 78V68h12M54 73h6M66 68v10"/>"#;
const TEAPOT: &str = r#"<ellipse class="art-shade" cx="60" cy="98" rx="38" ry="5"/><path class="art-line" d="M84 56c16-6 20 20 0 22"/><path class="art-a" d="M34 66 16 50l10-4 14 10z"/><path class="art-a" d="M32 66a28 26 0 0 1 56 0c0 18-12 28-28 28S32 84 32 66z"/><path class="art-b" d="M38 50a28 26 0 0 1 44 0z"/><circle class="art-d" cx="60" cy="34" r="6"/><path class="art-c" d="M44 94h32v4H44z"/>"#;
const POSTER: &str = r#"<ellipse class="art-shade" cx="60" cy="107" rx="32" ry="4"/><rect class="art-c" x="28" y="14" width="64" height="88" rx="2"/><rect class="art-a" x="35" y="21" width="50" height="62"/><circle class="art-d" cx="69" cy="40" r="10"/><path class="art-b" d="M35 83V68l16-16 17 17 8-7 9 9v12z"/><path class="art-line" d="M42 92h22"/>"#;
const PARCEL: &str = r#"<ellipse class="art-shade" cx="60" cy="100" rx="36" ry="5"/><path class="art-a" d="M24 42h72v52a4 4 0 0 1-4 4H28a4 4 0 0 1-4-4z"/><path class="art-b" d="M32 24h56l8 18H24z"/><path class="art-c" d="M52 24h16v34H52z"/>"#;
