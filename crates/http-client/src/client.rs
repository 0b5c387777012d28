//! The setup of the program's own HTTP clients: TLS provider, no proxy, no redirects. Sends
//! nothing.

use reqwest::{ClientBuilder, redirect};

/// A builder for asynchronous clients; `reqwest::blocking::ClientBuilder::from` makes a blocking
/// one of it.
///
/// Without `tls` the system's root certificates are not read, so a machine that has none can still
/// use plain HTTP.
pub fn builder(tls: bool) -> ClientBuilder {
    // An error means that a provider is already installed.
    drop(rustls::crypto::ring::default_provider().install_default());

    let builder = ClientBuilder::new()
        // A proxy from the environment would see prompts and keys; a redirect would send a key
        // elsewhere.
        .no_proxy()
        .redirect(redirect::Policy::none())
        // The callers retry, and they count.
        .retry(reqwest::retry::never())
        .user_agent(concat!("prime-agents/", env!("CARGO_PKG_VERSION")));

    if tls { builder } else { builder.tls_certs_only([]) }
}

/// The innermost cause of an error: the outer layers only say that something failed.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
