//! Without keys, every program on this machine may use the daemon. That includes the browser,
//! through which foreign pages could reach it (by DNS rebinding, or cross-origin); `Host` and
//! `Origin` give those away.

use std::net::IpAddr;

use actix_web::dev::RequestHead;
use actix_web::http::header::{HOST, HeaderName, ORIGIN};

use crate::error::ApiError;

/// Checks that a request is for this machine and not from a page of another origin.
///
/// # Errors
/// 403 with the reason.
pub fn check_local(head: &RequestHead) -> Result<(), ApiError> {
    // With several, each must name this machine.
    let mut host = None;
    for name in head.headers.get_all(HOST) {
        let name = name.to_str().unwrap_or_default();
        if !is_this_machine(name) {
            return Err(not_local(name));
        }
        host = Some(name);
    }
    if let Some(authority) = head.uri.authority()
        && !is_this_machine(authority.as_str())
    {
        return Err(not_local(authority.as_str()));
    }

    // Every page may send a request without asking; only one that this daemon served has its own
    // host as its origin.
    let own = host.map(|host| format!("http://{host}"));
    let mut origins = texts(head, &ORIGIN);
    let foreign =
        origins.find(|origin| !own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(origin)));
    if let Some(origin) = foreign {
        return Err(ApiError::forbidden(
            "foreign_origin",
            format!(
                "the request comes from a page of another origin ({origin:?}), which is not allowed without \
                 keys (server.keys)"
            ),
        ));
    }
    Ok(())
}

fn texts<'a>(head: &'a RequestHead, name: &'a HeaderName) -> impl Iterator<Item = &'a str> {
    head.headers.get_all(name).map(|value| value.to_str().unwrap_or_default())
}

fn not_local(host: &str) -> ApiError {
    ApiError::forbidden(
        "foreign_host",
        format!(
            "the request is for the host {host:?}, but without keys (server.keys), only 127.0.0.1, localhost and [::1] \
             are allowed"
        ),
    )
}

/// True if `host` or `host:port` is a loopback address or `localhost`. Other names could resolve to
/// anything.
fn is_this_machine(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };

    let port_fits =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    // A bare IPv6 address is ambiguous before a port, and brackets are for IPv6 only.
    let is_six = host.starts_with('[');
    let name_fits = match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() && address.is_ipv6() == is_six,
        Err(_) => name.eq_ignore_ascii_case("localhost") && !is_six,
    };
    name_fits && port_fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn code(uri: &str, headers: &[(&'static str, &str)]) -> Option<&'static str> {
        let request = headers.iter().fold(TestRequest::with_uri(uri), |request, (name, value)| {
            request.append_header((*name, *value))
        });
        check_local(request.to_http_request().head()).err().map(|error| error.code())
    }

    #[test]
    fn only_names_of_this_machine_are_allowed() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7433",
            "localhost",
            "LocalHost:80",
            "[::1]",
            "[::1]:7433",
            "127.1.2.3:1",
        ] {
            assert_eq!(code("/", &[("Host", host)]), None, "{host}");
        }
        for host in [
            "",
            "example.org",
            "example.org:7433",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "127.0.0.1@example.org",
            "example.org#localhost",
            "localhost:",
            "localhost:x",
            "10.0.0.1",
            "0.0.0.0",
            "::1",
            "[127.0.0.1]",
            "[localhost]",
            "[::2]",
            "[::1]x",
        ] {
            assert_eq!(code("/", &[("Host", host)]), Some("foreign_host"), "{host}");
        }
        assert_eq!(code("http://example.org/", &[("Host", "localhost")]), Some("foreign_host"));
        assert_eq!(code("/", &[]), None, "HTTP/1.0, which no browser speaks");
    }

    #[test]
    fn only_pages_of_the_daemon_itself_are_allowed() {
        let from = |origin| code("/", &[("Host", "localhost:7433"), ("Origin", origin)]);
        assert_eq!(from("http://localhost:7433"), None);
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:3000",
            "https://localhost:7433",
            "http://127.0.0.1:7433",
            "https://example.org",
            "http://localhost:7433.example.org",
        ] {
            assert_eq!(from(origin), Some("foreign_origin"), "{origin}");
        }
        let two = [
            ("Host", "localhost"),
            ("Origin", "http://localhost"),
            ("Origin", "http://example.org"),
        ];
        assert_eq!(code("/", &two), Some("foreign_origin"));
        assert_eq!(
            code("/", &[("Origin", "http://localhost")]),
            Some("foreign_origin"),
            "no host to compare with"
        );
    }
}
