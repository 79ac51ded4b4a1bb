//! Styles, script and icon, which are part of the program. The name of each has a digest of its
//! content, so that a browser can keep the file forever and still never shows an old one.

use std::sync::OnceLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::console::PATH;

/// A file of the console.
#[derive(Debug)]
pub(crate) struct StaticAsset {
    name: &'static str,
    ending: &'static str,
    media_type: &'static str,
    content: &'static str,
    file: OnceLock<String>,
}

/// The styles.
pub(crate) static STYLES: StaticAsset = StaticAsset::new(
    "console",
    "css",
    "text/css; charset=utf-8",
    concat!(
        include_str!("assets/console.css"),
        include_str!("assets/parts.css"),
        include_str!("assets/narrow.css"),
    ),
);

/// The script.
pub(crate) static SCRIPT: StaticAsset = StaticAsset::new(
    "console",
    "js",
    "text/javascript; charset=utf-8",
    concat!(
        include_str!("assets/console.js"),
        include_str!("assets/times.js"),
        include_str!("assets/forms.js"),
        include_str!("assets/live.js"),
    ),
);

/// The icon.
pub(crate) static ICON: StaticAsset = StaticAsset::new(
    "icon",
    "svg",
    "image/svg+xml",
    include_str!("assets/icon.svg"),
);

/// Bytes of the digest that are shown.
const DIGEST_SHOWN: usize = 9;

impl StaticAsset {
    const fn new(
        name: &'static str,
        ending: &'static str,
        media_type: &'static str,
        content: &'static str,
    ) -> Self {
        Self {
            name,
            ending,
            media_type,
            content,
            file: OnceLock::new(),
        }
    }

    /// The path of the file on the server.
    pub(crate) fn url(&self) -> String {
        format!("{PATH}/assets/{}", self.file_name())
    }

    fn file_name(&self) -> &str {
        self.file.get_or_init(|| {
            let digest = Sha256::digest(self.content);
            let digest = URL_SAFE_NO_PAD.encode(&digest[..DIGEST_SHOWN]);
            format!("{}.{digest}.{}", self.name, self.ending)
        })
    }
}

/// Returns a file.
pub(crate) async fn serve_file(Path(file): Path<String>) -> Response {
    let found = [&STYLES, &SCRIPT, &ICON]
        .into_iter()
        .find(|asset| asset.file_name() == file);
    let Some(asset) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (CONTENT_TYPE, asset.media_type),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, asset.content).into_response()
}
