//! API keys are sent but never shown.

use super::server::{Act, Request, Server};
use super::{pool, request};
use crate::model::Model as _;
use crate::upstream::OpenAiModel;
use prime_settings::UpstreamPool;

const KEY: &str = "sk-very-secret-0123456789";

#[tokio::test]
async fn a_key_is_sent_but_never_shown_even_if_a_server_echoes_it() {
    let words = format!("no such key: Bearer {KEY}");
    let cut = format!("{}{KEY}", "x".repeat(190));
    for act in [
        Act::Status(401, "", serde_json::json!({"error": {"message": words}}).to_string()),
        Act::Status(500, "", cut),
        Act::Status(200, "", serde_json::json!({"error": words}).to_string()),
        Act::Raw(
            "HTTP/1.1 200 X\r\nContent-Type: sk-very-secret-0123456789\r\n\
             Content-Length: 0\r\n\r\n",
        ),
    ] {
        let server = Server::start(
            move |_, request| if request.is_probe() { Act::Say("") } else { act.clone() },
        )
        .await;

        let mut settings =
            UpstreamPool { retries_max: 1, health_interval_ms: 3_600_000, ..pool(&[&server.url]) };
        settings.upstreams[0].api_key_env = Some("UPSTREAM_KEY".to_owned());
        let lookup = |name: &str| (name == "UPSTREAM_KEY").then(|| KEY.to_owned());
        let model = OpenAiModel::new(&settings, lookup).unwrap();

        let error = format!("{:?}", model.complete(request(1)).await.unwrap_err());
        assert!(error.contains("[key]") || error.contains("[ke…"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert!(!format!("{:?}", model.snapshot()).contains("secret"));

        let header = format!("\r\nauthorization: bearer {KEY}\r\n");
        server.until(|seen| seen.requests.iter().any(Request::is_probe)).await;
        let seen = server.seen();
        assert!(
            seen.requests.iter().all(|request| format!("{}\r\n", request.head).contains(&header)),
            "{seen:?}"
        );
    }
}

#[test]
fn a_key_that_is_not_set_is_missed_at_once() {
    let mut settings = pool(&["http://127.0.0.1:1/v1"]);
    settings.upstreams[0].api_key_env = Some("UPSTREAM_KEY".to_owned());

    let message = OpenAiModel::new(&settings, |_| None).err().unwrap().to_string();
    assert!(
        message.contains("the environment variable UPSTREAM_KEY, which is not set"),
        "{message}"
    );
}
