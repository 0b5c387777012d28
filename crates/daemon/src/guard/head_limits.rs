//! Limits of the head of a request. actix-http itself reads up to 96 headers and 128 KiB, and
//! responds 431 beyond.

use actix_web::dev::RequestHead;

use crate::error::ApiError;
use prime_settings::Server;

/// Limits on the sizes of a request's headers and its address, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    header_bytes_max: usize,
    url_bytes_max: usize,
}

impl From<&Server> for HeadLimits {
    fn from(server: &Server) -> Self {
        Self {
            header_bytes_max: server.header_bytes_max as usize,
            url_bytes_max: server.url_bytes_max as usize,
        }
    }
}

impl HeadLimits {
    /// # Errors
    /// 414 when path and query are too long, 431 when the headers are too large.
    pub fn check(&self, head: &RequestHead) -> Result<(), ApiError> {
        let url = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
        if url > self.url_bytes_max {
            return Err(ApiError::url_too_long(format!(
                "path and query have {url} bytes, more than {} (server.url_bytes_max)",
                self.url_bytes_max
            )));
        }

        let headers: usize =
            head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers > self.header_bytes_max {
            return Err(ApiError::headers_too_large(format!(
                "names and values of the headers have {headers} bytes, more than {} (server.header_bytes_max)",
                self.header_bytes_max
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn heads_may_have_exactly_the_limit() {
        let limits = HeadLimits { header_bytes_max: 20, url_bytes_max: 10 };
        let check = |url: &str, headers: &[(&str, &str)]| {
            let request = headers.iter().fold(TestRequest::with_uri(url), |request, header| {
                request.append_header((header.0, header.1))
            });
            limits.check(request.to_http_request().head()).err().map(|error| error.code())
        };
        assert_eq!(check("/234567890", &[("x-a", "4567890"), ("x-a", "4567890")]), None);
        assert_eq!(check("/2345678901", &[]), Some("url_too_long"));
        assert_eq!(check("/2345?78901", &[]), Some("url_too_long"));
        assert_eq!(
            check("/", &[("x-a", "4567890"), ("x-a", "45678901")]),
            Some("headers_too_large")
        );
    }
}
