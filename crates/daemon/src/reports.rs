//! The routes of the reports that studies and load tests wrote into the folder `server.reports`.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use actix_files::NamedFile;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::background::in_background;
use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::state::State;

/// Most reports in a list.
const REPORTS_MAX: usize = 1_000;
/// Most folders and files that are looked at for a list.
const ENTRIES_MAX: usize = 100_000;
/// Maximum folder depth of a report.
const DEPTH_MAX: usize = 3;
/// The types of files that studies and load tests write; no others in the folder are served.
const EXTENSIONS: [&str; 10] =
    ["html", "svg", "csv", "md", "tex", "json", "jsonl", "parquet", "hlog", "toml"];
/// Reports have their styles and scripts inline. The sandbox gives them an origin of their own: no
/// matter who wrote them, they cannot use the studio's key or the API, or load anything.
const POLICY: &str = "sandbox allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox; default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

pub fn configure(config: &mut web::ServiceConfig) {
    let resource = |path: &str, route| {
        web::resource(path).route(route).default_service(web::to(|| method_not_allowed("GET")))
    };
    config
        .service(resource("/v1/reports", web::get().to(list)))
        .service(resource("/v1/reports/{path:.*}", web::get().to(file)));
}

/// A page with a report.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReportInfo {
    /// Below `server.reports`, with `/` between folders.
    pub path: String,
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// The reports of the folder.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportList {
    /// True if `server.reports` names a folder.
    pub configured: bool,
    /// The one written last comes first.
    pub reports: Vec<ReportInfo>,
    /// True if there are more than are listed.
    pub has_more: bool,
}

fn unreadable(folder: &str, error: &io::Error) -> ApiError {
    ApiError::not_found(
        "reports_unreadable",
        format!("`server.reports` is `{folder}`, which cannot be read: {error}"),
    )
}

/// The path of a report below the folder, if it is one. Links are not followed: they may lead out
/// of it.
fn report(folder: &Path, entry: &DirEntry) -> Option<ReportInfo> {
    let path = entry.path();
    if path.extension()? != "html" {
        return None;
    }

    let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
    let below: Option<Vec<_>> =
        path.strip_prefix(folder).ok()?.iter().map(|part| part.to_str()).collect();

    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Some(ReportInfo {
        path: below?.join("/"),
        bytes: metadata.len(),
        modified_ms: modified
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
    })
}

/// The reports, and whether there are more. Folders below it that cannot be read count as empty.
fn found(folder: &Path) -> io::Result<(Vec<ReportInfo>, bool)> {
    let mut found = Vec::new();
    let mut waiting = vec![(fs::read_dir(folder)?, 0)];

    let mut seen = 0;
    // Depth first, without recursion. The limit on entries keeps a huge folder from blocking a
    // thread.
    while let Some((entries, depth)) = waiting.pop() {
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                break;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.extend(
                    fs::read_dir(entry.path())
                        .ok()
                        .filter(|_| depth < DEPTH_MAX)
                        .map(|inner| (inner, depth + 1)),
                );
            } else {
                found.extend(report(folder, &entry));
            }
        }
    }

    found.sort_by(|a, b| b.modified_ms.cmp(&a.modified_ms).then_with(|| a.path.cmp(&b.path)));
    let has_more = found.len() > REPORTS_MAX || seen > ENTRIES_MAX;
    found.truncate(REPORTS_MAX);
    Ok((found, has_more))
}

/// Lists the reports of studies and load tests.
///
/// They are the `.html` files in the folder `server.reports`, up to three folders deep.
#[utoipa::path(
    get, path = "/v1/reports", tag = "operations", operation_id = "list_reports",
    responses(
        (status = 200, description = "The reports", body = ReportList),
        (status = 404, description = "The folder cannot be read", body = ErrorBody),
    ),
)]
pub async fn list(state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let folder = state.runs.app().settings().server.reports.clone();
    if folder.is_empty() {
        return Ok(HttpResponse::Ok().json(ReportList {
            configured: false,
            reports: Vec::new(),
            has_more: false,
        }));
    }

    let path = PathBuf::from(&folder);
    let (reports, has_more) =
        in_background(move || found(&path)).await?.map_err(|error| unreadable(&folder, &error))?;
    Ok(HttpResponse::Ok().json(ReportList { configured: true, reports, has_more }))
}

/// The file at a path below the folder. Links are followed as long as they lead to a file inside
/// it.
fn inside(folder: &Path, below: &str) -> io::Result<Option<PathBuf>> {
    // Before the disk is asked: no `..`, no root, no other types of files.
    let below = Path::new(below);
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let is_known =
        below.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known));
    if !is_plain || !is_known {
        return Ok(None);
    }
    // Links are resolved first, because only the real path shows whether the file is inside.
    let folder = folder.canonicalize()?;
    let file = folder.join(below).canonicalize().ok();
    Ok(file.filter(|file| file.starts_with(&folder) && file.is_file()))
}

/// Returns a report, or a table, figure or record file beside it.
#[utoipa::path(
    get, path = "/v1/reports/{path}", tag = "operations", operation_id = "show_report",
    params(("path" = String, description = "As `/v1/reports` lists it; files beside a report have the same folder")),
    responses(
        (status = 200, description = "The file; a page cannot use the API", content_type = "text/html", body = String),
        (status = 404, description = "There is no such file", body = ErrorBody),
    ),
)]
pub async fn file(
    state: web::Data<State>,
    request: HttpRequest,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let missing = || {
        ApiError::not_found(
            "no_such_report",
            format!("there is no report `{path}`; GET /v1/reports lists them"),
        )
    };

    let folder = state.runs.app().settings().server.reports.clone();
    if folder.is_empty() {
        return Err(missing());
    }

    let (root, below) = (PathBuf::from(&folder), path.clone());
    let found = in_background(move || inside(&root, &below))
        .await?
        .map_err(|error| unreadable(&folder, &error))?;
    let file = NamedFile::open_async(found.ok_or_else(missing)?).await.map_err(|_| missing())?;

    let mut response = file.into_response(&request);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, header::HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn reports_are_found_and_nothing_outside_is() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("reports");
        fs::create_dir_all(root.join("a/b/c/d")).unwrap();
        for name in [
            "one.html",
            "a/report.html",
            "a/b/c/deep.html",
            "a/b/c/d/deeper.html",
            "a/table.csv",
            "a/key.pem",
        ] {
            fs::write(root.join(name), name).unwrap();
        }

        fs::write(home.path().join("secret.html"), "secret").unwrap();
        symlink(home.path().join("secret.html"), root.join("link.html")).unwrap();
        symlink(home.path(), root.join("up")).unwrap();

        let (reports, has_more) = found(&root).unwrap();
        let mut paths: Vec<_> = reports.iter().map(|report| report.path.as_str()).collect();
        paths.sort_unstable();

        assert_eq!(
            (paths, has_more),
            (vec!["a/b/c/deep.html", "a/report.html", "one.html"], false)
        );

        let is_served = |path: &str| inside(&root, path).unwrap().is_some();
        for path in ["one.html", "a/report.html", "a/table.csv"] {
            assert!(is_served(path), "{path}");
        }

        let outside =
            ["link.html", "up/secret.html", "../secret.html", "a/../one.html", "/etc/hosts.json"];
        for path in outside.into_iter().chain(["a/key.pem", "a", "", "none.html"]) {
            assert!(!is_served(path), "{path}");
        }

        assert!(found(&root.join("none")).is_err());
    }
}
