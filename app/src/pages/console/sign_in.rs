//! The page of whoever is not signed in.

use leptos::prelude::*;

use super::Told;
use crate::data::console::Notice;
use crate::pages::PrivateTitle;
use crate::text::{Lang, OpsWord};

/// Asks for a name and the password.
pub(super) fn page(lang: Lang, notice: Option<Notice>) -> AnyView {
    view! {
        <PrivateTitle title=lang.title(lang.ops(OpsWord::Console))/>
        <div class="console">
            <h1>{lang.ops(OpsWord::Console)}</h1>
            <Told notice lang/>
            <form class="console-card console-form" method="post" action="/ops/sign-in">
                <p>{lang.ops(OpsWord::SignInLead)}</p>
                <label for="operator-name">{lang.ops(OpsWord::Name)}</label>
                <input
                    class="input"
                    id="operator-name"
                    name="name"
                    required=true
                    maxlength="60"
                    autocomplete="username"
                />
                <label for="operator-password">{lang.ops(OpsWord::Password)}</label>
                <input
                    class="input"
                    id="operator-password"
                    name="password"
                    type="password"
                    required=true
                    autocomplete="current-password"
                />
                <button class="button button-primary" type="submit" data-testid="sign-in">
                    {lang.ops(OpsWord::SignIn)}
                </button>
            </form>
        </div>
    }
    .into_any()
}
