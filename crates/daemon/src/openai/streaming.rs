//! The response to a chat completion with `stream`: chunks as server-sent events, steps as they
//! become durable, then the answer.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures::{Stream, StreamExt as _, stream};

use super::accept::AcceptedRun;
use super::completion::record_of;
use super::reasoning::ReasoningStream;
use super::response::{Chunk, Delta, Head, finish_reason};
use crate::error::ApiError;
use crate::guard::Permit;
use crate::heartbeat::with_heartbeat;
use prime_protocol::Usage;
use prime_service::runs::Runs;

/// Writes an event.
fn write_event(text: &mut Vec<u8>, data: &impl serde::Serialize) {
    text.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *text, data).expect("invariant: chunks serialise");
    text.extend_from_slice(b"\n\n");
}

fn event_of(chunk: &Chunk<'_>) -> Bytes {
    let mut text = Vec::new();
    write_event(&mut text, chunk);
    text.into()
}

/// The chunks of one choice; adds its tokens to `usage` before the last.
fn choice(
    runs: &Arc<Runs>,
    head: &Rc<Head>,
    index: u32,
    AcceptedRun { run, expected }: &AcceptedRun,
    usage: &Rc<Cell<Usage>>,
) -> impl Stream<Item = Result<Bytes, ApiError>> + use<> {
    let begin = Delta { role: Some("assistant"), content: Some(String::new()), ..Delta::default() };
    let begin = event_of(&Chunk { prime: Some((&run.record).into()), ..head.delta(index, begin) });

    let id = run.id();
    let (chunks, mut reasoning) = (Rc::clone(head), ReasoningStream::new());
    let steps = runs.reader().events(id, 0, true).map(move |lines| {
        let mut text = Vec::new();
        for (_, event) in lines?.events() {
            if let Some(steps) = reasoning.delta(event)? {
                let delta = Delta { reasoning_content: Some(steps), ..Delta::default() };
                write_event(&mut text, &chunks.delta(index, delta));
            }
        }
        Ok(Bytes::from(text))
    });

    let (runs, head, id, usage) =
        (Arc::clone(runs), Rc::clone(head), id.to_owned(), Rc::clone(usage));

    let expected = expected.clone();
    // After the steps: their stream ends with the run.
    let end = stream::once(async move {
        let record = record_of(&runs, &id).await?;

        let mut sum = usage.get();
        sum.add(record.result.tokens);
        usage.set(sum);

        let mut text = Vec::new();
        let delivery = expected.delivery(&record);
        let reason = finish_reason(&record, &delivery);
        write_event(&mut text, &head.delta(index, Delta::answer(&id, delivery)));

        let mut last = head.delta(index, Delta::default());
        last.choices.iter_mut().for_each(|choice| choice.finish_reason = Some(reason));
        last.prime = Some((&record).into());
        write_event(&mut text, &last);
        Ok(Bytes::from(text))
    });

    stream::once(std::future::ready(Ok(begin))).chain(steps).chain(end)
}

/// Turns an error into the last event.
fn with_errors(
    pieces: impl Stream<Item = Result<Bytes, ApiError>>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(Some(Box::pin(pieces)), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.next().await? {
            Ok(piece) => Some((Ok(piece), Some(pieces))),
            Err(error) => {
                let mut text = Vec::new();
                write_event(&mut text, &error.body());
                Some((Ok(text.into()), None))
            }
        }
    })
}

/// Responds at once, and streams while the runs continue. Dropping the body drops `accepted`.
pub fn respond(
    runs: &Arc<Runs>,
    head: Head,
    accepted: Vec<AcceptedRun>,
    wants_usage: bool,
    permit: Option<Permit>,
) -> HttpResponse {
    let (head, usage) = (Rc::new(head), Rc::new(Cell::new(Usage::default())));
    let choices = (0..)
        .zip(&accepted)
        .map(|(index, run)| choice(runs, &head, index, run, &usage).boxed_local());

    let choices = stream::select_all(choices.collect::<Vec<_>>());
    let end = stream::once(async move {
        let mut text = Vec::new();
        if wants_usage {
            write_event(&mut text, &Chunk { usage: Some(usage.get().into()), ..head.chunk() });
        }
        text.extend_from_slice(b"data: [DONE]\n\n");
        Ok(Bytes::from(text))
    });

    // An empty piece would end the body.
    let pieces = choices
        .chain(end)
        .filter(|piece| std::future::ready(!piece.as_ref().is_ok_and(Bytes::is_empty)));

    let body = with_heartbeat(with_errors(pieces), permit).map(move |piece| {
        let _cancelled_with_the_body = &accepted;
        piece
    });

    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-cache"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn an_error_is_the_last_event() {
        let pieces =
            [Ok(Bytes::from("a")), Err(ApiError::internal("it broke")), Ok(Bytes::from("b"))];
        let sent: Vec<_> = with_errors(stream::iter(pieces)).map(Result::unwrap).collect().await;

        assert_eq!(sent.len(), 2);
        let error = std::str::from_utf8(&sent[1]).unwrap();
        let data: serde_json::Value =
            serde_json::from_str(error.strip_prefix("data: ").unwrap()).unwrap();
        assert!(error.ends_with("\n\n"));

        assert_eq!(data["error"]["message"], "it broke");
    }
}
