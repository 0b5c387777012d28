//! The response with `stream`: one event at once, the others when the run is over.

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::response::{
    ModelResponse, Outcome, OutputContent, OutputItem, ResponseStatus, Template,
};
use crate::error::ApiError;
use crate::guard::Permit;
use crate::heartbeat::with_heartbeat;
use crate::openai::accept::AcceptedRun;
use crate::openai::completion::ended;
use prime_service::runs::Runs;

/// The events of a response, numbered.
#[derive(Default)]
struct Events {
    next: u64,
    text: Vec<u8>,
}

impl Events {
    fn add(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = kind.into();
        fields["sequence_number"] = self.next.into();
        self.next += 1;
        self.text.extend_from_slice(format!("event: {kind}\ndata: {fields}\n\n").as_bytes());
    }

    /// Takes the text of the events so far.
    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.text).into()
    }

    fn begin(&mut self, response: &ModelResponse) {
        self.add("response.created", json!({ "response": response }));
        self.add("response.in_progress", json!({ "response": response }));
    }

    fn reasoning(&mut self, at: usize, id: &str, text: &str) {
        let place = || json!({ "item_id": id, "output_index": at, "summary_index": 0 });
        let with = |name: &str, value: Value| {
            let mut fields = place();
            fields[name] = value;
            fields
        };

        let part = |text: &str| json!({ "type": "summary_text", "text": text });

        self.add("response.reasoning_summary_part.added", with("part", part("")));
        self.add("response.reasoning_summary_text.delta", with("delta", text.into()));
        self.add("response.reasoning_summary_text.done", with("text", text.into()));
        self.add("response.reasoning_summary_part.done", with("part", part(text)));
    }

    fn content(&mut self, at: usize, id: &str, content: &OutputContent) {
        let with = |fields: Value| {
            let mut all = json!({ "item_id": id, "output_index": at, "content_index": 0 });
            if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
                all.extend(fields);
            }
            all
        };

        let (empty, name, text) = match content {
            OutputContent::OutputText { text, .. } => (
                json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []}),
                "text",
                text,
            ),
            OutputContent::Refusal { refusal } => {
                (json!({"type": "refusal", "refusal": ""}), "refusal", refusal)
            }
        };

        let kind = if name == "text" { "output_text" } else { name };

        self.add("response.content_part.added", with(json!({ "part": empty })));
        self.add(&format!("response.{kind}.delta"), with(json!({ "delta": text, "logprobs": [] })));
        self.add(&format!("response.{kind}.done"), with(json!({ name: text, "logprobs": [] })));
        self.add("response.content_part.done", with(json!({ "part": content })));
    }

    fn item(&mut self, at: usize, item: &OutputItem) {
        // An item begins without its content, which the following events add.
        let mut begun = json!(item);
        for (list, empty) in
            [("summary", json!([])), ("content", json!([])), ("arguments", json!(""))]
        {
            if begun.get(list).is_some() {
                begun[list] = empty;
            }
        }
        if begun.get("status").is_some() {
            begun["status"] = json!(ResponseStatus::InProgress);
        }
        self.add("response.output_item.added", json!({ "output_index": at, "item": begun }));

        match item {
            OutputItem::Reasoning { id, summary } => {
                summary.iter().for_each(|part| self.reasoning(at, id, &part.text));
            }
            OutputItem::Message { id, content, .. } => {
                content.iter().for_each(|content| self.content(at, id, content));
            }
            OutputItem::FunctionCall { id, name, arguments, .. } => {
                let call = |field: &str| json!({ "item_id": id, "output_index": at, field: arguments, "name": name });
                self.add("response.function_call_arguments.delta", call("delta"));
                self.add("response.function_call_arguments.done", call("arguments"));
            }
        }

        self.add("response.output_item.done", json!({ "output_index": at, "item": item }));
    }

    fn end(&mut self, response: &ModelResponse) {
        response.output.iter().enumerate().for_each(|(at, item)| self.item(at, item));
        let kind = match response.status {
            ResponseStatus::Incomplete => "response.incomplete",
            ResponseStatus::Completed | ResponseStatus::InProgress => "response.completed",
        };
        self.add(kind, json!({ "response": response }));
    }

    fn fail(&mut self, error: &ApiError) {
        let error = error.body().error;
        self.add(
            "error",
            json!({ "code": error.code, "message": error.message, "param": error.param }),
        );
    }
}

/// Responds at once. Dropping the body drops `accepted`.
pub fn respond(
    runs: &Arc<Runs>,
    template: Template,
    accepted: AcceptedRun,
    permit: Option<Permit>,
) -> HttpResponse {
    let mut events = Events::default();
    events.begin(&template.response(None));
    let begin = events.take();

    let runs = Arc::clone(runs);
    let end = stream::once(async move {
        match ended(&runs, accepted.run.id()).await {
            Ok((record, reasoning)) => {
                let delivery = accepted.expected.delivery(&record);
                events.end(&template.response(Some(Outcome { record, delivery, reasoning })));
            }
            Err(error) => events.fail(&error),
        }
        Ok(events.take())
    });

    let pieces = stream::once(std::future::ready(Ok::<_, Infallible>(begin))).chain(end);
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-cache"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(with_heartbeat(pieces, permit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_and_named() {
        let mut events = Events::default();
        events.content(1, "msg_x", &OutputContent::Refusal { refusal: "no".to_owned() });

        let text = String::from_utf8(events.take().to_vec()).unwrap();
        let named: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        assert_eq!(
            named,
            [
                "response.content_part.added",
                "response.refusal.delta",
                "response.refusal.done",
                "response.content_part.done",
            ]
        );

        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let data: Vec<Value> = data.map(|line| serde_json::from_str(line).unwrap()).collect();
        for (number, (event, name)) in data.iter().zip(named).enumerate() {
            assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
            assert_eq!((&event["item_id"], &event["output_index"]), (&json!("msg_x"), &json!(1)));
        }

        assert_eq!((&data[1]["delta"], &data[2]["refusal"]), (&json!("no"), &json!("no")));
    }
}
