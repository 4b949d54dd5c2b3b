//! The catalogue: what is on sale, and a form a product that makes an order.

use leptos::prelude::*;
use leptos_meta::{Meta, Title};
use leptos_router::hooks::use_query_map;

use crate::components::art::Art;
use crate::data::{Card, PageContext};
use crate::pages::{Found, page};
use crate::seed::Notice;
use crate::text::{Lang, Word};

/// The most that one order may hold of a product.
const MOST: u64 = 99;

/// The catalogue.
#[component]
pub fn CataloguePage() -> impl IntoView {
    let notice = use_query_map().with_untracked(|query| query.get("notice"));
    page(move |context| catalogue(context, notice.clone()))
}

async fn catalogue(context: PageContext, notice: Option<String>) -> Found {
    let lang = context.lang;
    let cards = context.data.catalogue().await?;
    let notice = notice.and_then(|name| Notice::try_from(name).ok());
    let notice = notice.and_then(|notice| notice.text(lang));
    let empty = cards
        .is_empty()
        .then(|| view! { <p>{lang.word(Word::NothingOnSale)}</p> });
    let cards = cards
        .into_iter()
        .map(|card| view! { <Product card lang/> })
        .collect_view();
    let body = view! {
        <Title text=lang.title(lang.word(Word::Tagline))/>
        <Meta name="description" content=lang.word(Word::CatalogueLead)/>
        <div class="catalogue">
            <div class="catalogue-lead">
                <h1>{lang.word(Word::CatalogueTitle)}</h1>
                <p>{lang.word(Word::CatalogueLead)}</p>
            </div>
            {notice.map(|text| view! { <p class="notice" data-testid="notice">{text}</p> })}
            {empty}
            <ul class="shelf">{cards}</ul>
        </div>
    };
    Ok(Some(body.into_any()))
}

/// One product with its order form.
#[component]
fn Product(card: Card, lang: Lang) -> impl IntoView {
    let heading = format!("product-{}", card.sku);
    let left = lang.left(card.available);
    let buy = if card.available == 0 {
        view! { <p class="sold-out">{lang.word(Word::SoldOut)}</p> }.into_any()
    } else {
        view! { <OrderForm card=card.clone() heading=heading.clone() lang/> }.into_any()
    };
    view! {
        <li class="card" data-testid="product" data-sku=card.sku.to_string()>
            <div class="card-art"><Art sku=card.sku.clone()/></div>
            <h2 id=heading>{card.name}</h2>
            <p class="card-blurb">{card.blurb}</p>
            <p class="card-price">
                {lang.won(card.price)}
                {left.map(|text| view! { <span class="card-left">{text}</span> })}
            </p>
            {buy}
        </li>
    }
}

#[component]
fn OrderForm(card: Card, heading: String, lang: Lang) -> impl IntoView {
    let field = format!("quantity-{}", card.sku);
    view! {
        <form class="order-form" method="post" action="/orders" aria-labelledby=heading.clone()>
            <input type="hidden" name="sku" value=card.sku.to_string()/>
            <label for=field.clone()>{lang.word(Word::Quantity)}</label>
            <input
                id=field
                class="quantity"
                type="number"
                name="quantity"
                min="1"
                max=card.available.min(MOST).to_string()
                value="1"
                inputmode="numeric"
                required
            />
            <button class="button button-primary" type="submit" data-testid="order">
                {lang.word(Word::Order)}
            </button>
        </form>
    }
}
