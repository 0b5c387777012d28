//! Connection URLs, and TLS with the meaning of libpq's `sslmode`.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// Where and how to connect.
pub(super) struct Target {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: MakeRustlsConnect,
    /// The URL without its password, for messages.
    pub(super) shown: String,
}

/// The URL without its password and parameters.
pub(super) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "an unreadable URL".to_owned() };

    let rest = rest.split('?').next().unwrap_or_default();
    // A password may contain `@`, a host cannot.
    let shown = match rest.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => rest.to_owned(),
    };
    format!("{scheme}://{shown}")
}

/// The URL with its parameters, but without a password.
pub fn without_password(url: &str) -> String {
    if url.is_empty() {
        return String::new();
    }
    let Some((_, query)) = url.split_once('?') else { return shown(url) };
    let is_password = |parameter: &&str| parameter.split('=').next() == Some("password");

    let kept: Vec<&str> = query.split('&').filter(|parameter| !is_password(parameter)).collect();
    if kept.is_empty() { shown(url) } else { format!("{}?{}", shown(url), kept.join("&")) }
}

/// # Errors
/// What is wrong with the URL or its certificates, and what to do.
pub(super) fn parse(url: &str) -> Result<Target, String> {
    let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    if !is_postgres {
        return Err("the URL must begin with postgres://".to_owned());
    }
    // `sslmode` and `sslrootcert` are taken out: the client knows only some modes, and no file.
    let (base, query) = url.split_once('?').unwrap_or((url, ""));

    let (mut mode, mut roots, mut rest) = ("prefer", None, Vec::new());
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => mode = value,
            Some(("sslrootcert", value)) => roots = Some(percent_decoded(value)),
            _ => rest.push(parameter),
        }
    }

    let (ssl_mode, check) = match mode {
        "disable" => (SslMode::Disable, Check::Nothing),
        "prefer" => (SslMode::Prefer, Check::Nothing),
        "require" => (SslMode::Require, Check::Nothing),
        "verify-ca" => (SslMode::Require, Check::Authority),
        "verify-full" => (SslMode::Require, Check::AuthorityAndName),
        other => {
            return Err(format!(
                "sslmode={other} is not one of disable, prefer, require, verify-ca, verify-full"
            ));
        }
    };

    let plain = format!("{base}?{}", rest.join("&"));
    let mut config: tokio_postgres::Config =
        plain.parse().map_err(|error: tokio_postgres::Error| {
            // The client's message may hold parts of the URL, but never the password.
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(
            "the URL names no host: postgres://USER@HOST/DATABASE, or ?host=/run/postgresql for a socket".to_owned()
        );
    }

    let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
        && !config.get_hosts().is_empty();
    if is_local && check != Check::Nothing {
        return Err(format!("sslmode={mode} needs a host: a socket has no TLS"));
    }

    config.ssl_mode(if is_local { SslMode::Disable } else { ssl_mode });

    config.connect_timeout(config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(5)));
    // The system's own limit is several minutes, much longer than a lease.
    config.tcp_user_timeout(
        config.get_tcp_user_timeout().copied().unwrap_or(Duration::from_secs(10)),
    );

    if config.get_application_name().is_none() {
        config.application_name("prime-agents");
    }

    // With several hosts, connects to the one that accepts writes.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    Ok(Target {
        config,
        tls: MakeRustlsConnect::new(tls(check, roots.as_deref())?),
        shown: shown(url),
    })
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());

    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped =
            escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');

        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn tls(check: Check, roots: Option<&str>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match check {
        Check::Nothing => Arc::new(Lenient { inner: None, provider: Arc::clone(&provider) }),
        Check::Authority => Arc::new(Lenient {
            inner: Some(authority(roots, &provider)?),
            provider: Arc::clone(&provider),
        }),
        Check::AuthorityAndName => authority(roots, &provider)?,
    };

    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn authority(
    roots: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let path =
        roots.ok_or("sslmode=verify-ca and verify-full need sslrootcert=FILE: the authority's certificate in PEM")?;

    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates = certificates.map_err(|error| format!("sslrootcert={path}: {error}"))?;

    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(format!("sslrootcert={path} holds no certificate in PEM"));
    }

    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
    verifier.build().map_err(|error| format!("sslrootcert={path}: {error}"))
}

/// Checks less than the default verifier: only the authority, or only that the server has the
/// certificate's key.
#[derive(Debug)]
struct Lenient {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // Safe to ignore, because the chain is verified before the name.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let cases = [
            (
                "postgres://ada:se:cr@et@db.example:5432/prime?sslmode=require",
                "postgres://ada@db.example:5432/prime",
            ),
            ("postgres://db/prime?password=secret", "postgres://db/prime"),
            ("secret", "an unreadable URL"),
        ];
        for (url, expected) in cases {
            assert_eq!(shown(url), expected);
        }

        let cases = [
            (
                "postgres://ada:secret@db/p?sslmode=require&password=s",
                "postgres://ada@db/p?sslmode=require",
            ),
            ("postgres://db/p?password=s", "postgres://db/p"),
            ("postgres://ada@db/p", "postgres://ada@db/p"),
        ];
        for (url, expected) in cases {
            assert_eq!(without_password(url), expected);
        }
    }

    #[test]
    fn urls_say_how_to_connect() {
        let target =
            parse("postgres://ada@db.example/prime?sslmode=require&connect_timeout=3").unwrap();
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(target.config.get_connect_timeout(), Some(&Duration::from_secs(3)));

        let socket = parse("postgres://ada@/prime?host=%2Frun%2Fpostgresql").unwrap();
        assert_eq!(socket.config.get_ssl_mode(), SslMode::Disable);

        let cases = [
            ("mysql://db/prime", "must begin with postgres://"),
            ("postgres://db/prime?sslmode=allow", "sslmode=allow is not one of"),
            ("postgres://db/prime?sslmode=verify-full", "need sslrootcert=FILE"),
            (
                "postgres://db/prime?sslmode=verify-ca&sslrootcert=%2Fno%2Fsuch.pem",
                "sslrootcert=/no/such.pem: ",
            ),
            (
                "postgres://ada@/prime?host=/run/postgresql&sslmode=verify-full",
                "a socket has no TLS",
            ),
            ("postgres:///prime", "names no host"),
            ("postgres://db/prime?colour=red", "colour"),
        ];
        for (url, part) in cases {
            let error = parse(url).err().expect(url);
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
