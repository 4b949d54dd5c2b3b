//! A refusal for load or for asking too much, told so that whoever asked can go on: programs and scripts get a problem,
//! people without script a page that opens again by itself, or the page they came from.

use app::text::{Lang, Word};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use payment::wire::ProblemCode;

use super::problem::Refusal;

/// In both languages, since finding out which one is wanted is work, and there is too much of that.
fn page() -> String {
    let words = |lang: Lang| {
        let (heading, text) = (lang.word(Word::BusyTitle), lang.word(Word::BusyBody));
        format!(
            "<div lang=\"{}\"><h1>{heading}</h1><p>{text}</p></div>",
            lang.tag()
        )
    };
    format!(
        "<!doctype html><html lang=\"ko\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{}</title><main>{}{}</main></html>",
        Lang::Ko.word(Word::Shop),
        words(Lang::Ko),
        words(Lang::En)
    )
}

/// The answer to a request that is refused before anything was looked at.
pub(super) fn busy(request: &Request, code: ProblemCode) -> Response {
    let refusal = Refusal::new(code);
    let headers = request.headers();
    let wants_page = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    let path = request.uri().path();
    if !wants_page || path.starts_with("/api/") || path.starts_with("/v1/") {
        return refusal.into_response();
    }
    if request.method() == Method::POST {
        return Redirect::to(&back(request.uri().path(), code)).into_response();
    }
    let mut response = refusal.into_response();
    *response.body_mut() = page().into();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.remove(header::CONTENT_LENGTH);
    headers.insert("refresh", HeaderValue::from_static("3"));
    debug_assert_ne!(response.status(), StatusCode::OK);
    response
}

/// The page that a form belongs to, with the reason.
fn back(path: &str, code: ProblemCode) -> String {
    let page = if path.starts_with("/checkout/") || path.starts_with("/orders/") {
        path
    } else {
        "/"
    };
    format!("{page}?notice={code}")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn ask(method: Method, path: &str, accept: &'static str) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .unwrap();
        busy(&request, ProblemCode::Overloaded)
    }

    #[test]
    fn people_without_script_get_a_page_that_opens_again_and_programs_a_problem() {
        let html = "text/html,application/xhtml+xml";
        let page = ask(Method::GET, "/checkout/ord_1", html);
        assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(page.headers()["refresh"], "3");
        assert!(page.headers().contains_key(header::RETRY_AFTER));
        assert_eq!(
            page.headers()[header::CONTENT_TYPE],
            "text/html; charset=utf-8"
        );
        let form = ask(Method::POST, "/checkout/ord_1", html);
        assert_eq!(form.status(), StatusCode::SEE_OTHER);
        assert_eq!(
            form.headers()[header::LOCATION],
            "/checkout/ord_1?notice=overloaded"
        );
        let form = ask(Method::POST, "/orders", html);
        assert_eq!(form.headers()[header::LOCATION], "/?notice=overloaded");
        for (path, accept) in [("/api/orders/ord_1", html), ("/checkout/ord_1", "*/*")] {
            let problem = ask(Method::GET, path, accept);
            assert_eq!(
                problem.headers()[header::CONTENT_TYPE],
                "application/problem+json"
            );
        }
    }
}
