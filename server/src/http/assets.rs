//! The files of the browser's half. Pages name them by what they contain, so that a browser keeps them for a year and
//! still never runs yesterday's program on today's page.

use std::fs;
use std::path::Path;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

use super::Web;

/// The files' own name, as the build leaves them.
const NAME: &str = "jari";

/// What a page needs of them.
const ENDINGS: [&str; 3] = ["js", "wasm", "css"];

/// How much of the digest is in the name, in bytes: twice as many digits, and no two builds alike.
const DIGEST_BYTES: usize = 8;

/// A year, the longest that caches are asked for.
const FOR_A_YEAR: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The name by which pages ask for the files below `site_root`: one digest over all, as they only work together. Where
/// they are not all there, or are replaced while the server runs (`cargo leptos watch`), it is their own.
pub(crate) fn name(site_root: &Path) -> String {
    if std::env::var_os("LEPTOS_WATCH").is_some() {
        return NAME.to_owned();
    }
    digest(&site_root.join("pkg")).map_or_else(|| NAME.to_owned(), |text| format!("{NAME}-{text}"))
}

fn digest(folder: &Path) -> Option<String> {
    let mut hasher = Sha256::new();
    for ending in ENDINGS {
        hasher.update(fs::read(folder.join(NAME).with_extension(ending)).ok()?);
    }
    let digest = hasher.finalize();
    Some(
        digest[..DIGEST_BYTES]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}

/// Serves one file, compressed by the build. What is asked for by the name of its content may be kept; another build's
/// name is no file.
pub(super) async fn serve(State(web): State<Web>, mut request: Request) -> Response {
    let root = Path::new(web.leptos.site_root.as_ref());
    let files = ServeDir::new(root.join("pkg"))
        .precompressed_br()
        .precompressed_gzip();
    let asked = request.uri().path().trim_start_matches("/pkg").to_owned();
    let by_content = own_name(&asked, &web.leptos.output_name);
    let Ok(own) = by_content.as_ref().unwrap_or(&asked).parse::<Uri>() else {
        return axum::http::StatusCode::NOT_FOUND.into_response();
    };
    *request.uri_mut() = own;
    let mut response = match files.oneshot(request).await {
        Ok(response) => response.into_response(),
        Err(never) => match never {},
    };
    let status = response.status();
    if by_content.is_some() && (status.is_success() || status.as_u16() == 304) {
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, FOR_A_YEAR);
    }
    response
}

/// The path of the file that `asked` names by its content; `None` where it does not.
fn own_name(asked: &str, by_content: &str) -> Option<String> {
    let ending = asked.strip_prefix('/')?.strip_prefix(by_content)?;
    let known = ENDINGS.iter().any(|known| ending == format!(".{known}"));
    (known && by_content != NAME).then(|| format!("/{NAME}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_changes_with_any_of_the_files_and_is_their_own_where_one_is_missing() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(name(root.path()), NAME);
        let folder = root.path().join("pkg");
        fs::create_dir(&folder).unwrap();
        for ending in ENDINGS {
            assert_eq!(name(root.path()), NAME, "before .{ending}");
            fs::write(folder.join(NAME).with_extension(ending), ending).unwrap();
        }
        let mut seen = vec![name(root.path())];
        assert_eq!(seen[0].len(), NAME.len() + 1 + 2 * DIGEST_BYTES);
        for ending in ENDINGS {
            fs::write(folder.join(NAME).with_extension(ending), "changed").unwrap();
            seen.push(name(root.path()));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 4, "{seen:?}");
    }

    #[test]
    fn only_this_builds_names_are_names_by_content() {
        let own = |asked| own_name(asked, "jari-0123");
        assert_eq!(own("/jari-0123.wasm").as_deref(), Some("/jari.wasm"));
        for other in [
            "/jari.wasm",
            "/jari-4567.wasm",
            "/jari-0123.map",
            "/a/jari-0123.js",
            "jari-0123.js",
        ] {
            assert_eq!(own(other), None, "{other}");
        }
        assert_eq!(own_name("/jari.js", NAME), None);
    }
}
