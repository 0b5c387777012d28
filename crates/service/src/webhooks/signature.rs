//! Signatures of Standard Webhooks, version 1: HMAC-SHA256 of id, time and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// The value of the header `webhook-signature`. `at_s` is that of `webhook-timestamp`, in seconds
/// since 1970.
pub fn signature(key: &[u8], id: &str, at_s: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, format!("{id}.{at_s}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_settings::WebhookSecret;

    #[test]
    fn the_example_of_standard_webhooks_is_signed_as_published() {
        let key = WebhookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").key().unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
