//! A recorded run as OpenTelemetry spans, in the JSON form of OTLP that a collector's file receiver
//! reads: a request a line. Names are those of the semantic conventions for generative AI, as in
//! the live spans of `telemetry`.

use std::collections::HashMap;

use futures::{Stream, TryStreamExt as _, stream};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::runs::decision::decision_name;
use crate::runs::error::RunError;
use crate::runs::reader::RunReader;
use crate::runs::reader::event_reader::EventBatch;
use crate::runs::record::RunRecord;
use crate::telemetry::TraceParent;
use prime_journal::ChainHash;
use prime_protocol::TurnId;
use prime_report::{LastPrompts, RecordedEvent, SentExchange, StepLine};

/// Spans of kind INTERNAL and CLIENT, as OTLP numbers them.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// Nanoseconds of a millisecond.
const NANOS: u64 = 1_000_000;

/// Writes the spans of a run.
struct Spans {
    record: RunRecord,
    /// Milliseconds since 1970 at which the run was accepted.
    began_ms: u64,
    trace: String,
    root: String,
    /// The caller's span.
    parent: Option<String>,
    /// True to add what models were asked and answered.
    content: bool,
    /// When the last step of each trajectory was decided, in milliseconds of run time.
    decided: HashMap<TurnId, u64>,
    /// When the last round ended.
    round_ms: u64,
    /// When the last step was decided.
    last_ms: u64,
    last: LastPrompts,
}

/// Ids follow from what they name, so that a run that is exported twice has the same.
fn id_of(run: &str, part: &str, bytes: usize) -> String {
    let digest = ChainHash(Sha256::digest(format!("{run}/{part}")).into()).to_string();
    digest[..2 * bytes].to_owned()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// OTLP's JSON has integers of 64 bits as texts.
fn int(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn number(key: &str, value: f64) -> Value {
    json!({"key": key, "value": {"doubleValue": value}})
}

/// The messages of a prompt or an answer, as the conventions write them: JSON in a text.
fn messages(role: &str, content: &str) -> String {
    json!([{"role": role, "parts": [{"type": "text", "content": content}]}]).to_string()
}

/// What a model was sent. A prompt of messages is OpenAI's form of them.
fn input_messages(exchange: &SentExchange) -> String {
    let sent = exchange.messages.then(|| serde_json::from_str::<Vec<Value>>(&exchange.prompt));
    let Some(Ok(sent)) = sent else { return messages("user", &exchange.prompt) };
    let sent = sent.into_iter().map(|message| {
        let content = match &message["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        json!({"role": message["role"], "parts": [{"type": "text", "content": content}]})
    });
    Value::Array(sent.collect()).to_string()
}

impl Spans {
    fn at(&self, elapsed_ms: u64) -> String {
        self.began_ms.saturating_add(elapsed_ms).saturating_mul(NANOS).to_string()
    }

    fn span(&self, part: &str, parent: &str, name: &str, [from, to]: [u64; 2]) -> Value {
        json!({
            "traceId": self.trace, "spanId": id_of(&self.record.id, part, 8),
            "parentSpanId": parent, "name": name, "kind": INTERNAL,
            "startTimeUnixNano": self.at(from), "endTimeUnixNano": self.at(to),
        })
    }

    fn step(&mut self, seq: u64, step: &StepLine<'_>) -> Result<Vec<Value>, String> {
        let id = step.id();
        self.last_ms = self.last_ms.max(step.elapsed_ms);
        let from = self.decided.insert(id, step.elapsed_ms).unwrap_or(self.round_ms);
        let part = format!("step {seq}");
        let times = [from.min(step.elapsed_ms), step.elapsed_ms];
        let mut span = self.span(&part, &self.root, "invoke_agent executor", times);

        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.agent.name", "executor"),
            text("gen_ai.conversation.id", &self.record.id),
            int("gen_ai.usage.input_tokens", step.usage.prompt),
            int("gen_ai.usage.output_tokens", step.usage.completion),
            int("prime.event", seq),
            int("prime.round", id.round.into()),
            int("prime.trajectory", id.trajectory.into()),
            int("prime.depth", step.depth as u64),
            text("prime.decision", decision_name(step.decision)),
        ];
        if let Some(source) = &step.source {
            attributes.push(text("gen_ai.request.model", source));
        }
        if self.content {
            let said = messages("assistant", &step.completion());
            attributes.push(text("gen_ai.output.messages", &said));
        }

        let score = step.score.value();
        let label = if score == 0.0 { "pass" } else { "fail" };
        let mut evaluation = vec![
            text("gen_ai.evaluation.name", "prime.violation_score"),
            number("gen_ai.evaluation.score.value", score),
            text("gen_ai.evaluation.score.label", label),
        ];
        if !step.violations.is_empty() {
            let names: Vec<_> =
                step.violations.iter().map(|name| json!({"stringValue": name})).collect();
            evaluation.push(
                json!({"key": "prime.violations", "value": {"arrayValue": {"values": names}}}),
            );
        }
        // The verifier's words may repeat what was asked.
        if let Some(feedback) = step.feedback.as_deref().filter(|_| self.content) {
            evaluation.push(text("gen_ai.evaluation.explanation", feedback));
        }
        span["events"] = json!([{
            "name": "gen_ai.evaluation.result", "timeUnixNano": self.at(step.elapsed_ms),
            "attributes": evaluation,
        }]);
        span["attributes"] = Value::Array(attributes);

        let parent = id_of(&self.record.id, &part, 8);
        let mut spans = vec![span];
        for (place, sent) in step.sent.iter().enumerate() {
            // Each prompt has only what differs from the one before.
            let whole = self.last.unpack(sent.clone())?;
            spans.push(self.chat(&format!("{part} chat {place}"), &parent, times, &whole));
        }
        Ok(spans)
    }

    fn chat(&self, part: &str, parent: &str, times: [u64; 2], sent: &SentExchange) -> Value {
        let mut span = self.span(part, parent, "chat", times);
        let mut attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.agent.name", sent.role.name()),
            text("gen_ai.conversation.id", &self.record.id),
        ];
        if self.content {
            attributes.push(text("gen_ai.input.messages", &input_messages(sent)));
            if let Some(answer) = &sent.answer {
                attributes.push(text("gen_ai.output.messages", &messages("assistant", answer)));
            }
        }
        if sent.failure.is_some() {
            attributes.push(text("error.type", "_OTHER"));
            span["status"] = json!({"code": 2});
        }
        span["kind"] = json!(CLIENT);
        span["attributes"] = Value::Array(attributes);
        span
    }

    fn root(&self) -> Value {
        let (record, result) = (&self.record, &self.record.result);
        let mut span = self.span("", "", "invoke_workflow prime", [0, result.wall_ms]);
        span["spanId"] = json!(self.root);
        match &self.parent {
            Some(parent) => span["parentSpanId"] = json!(parent),
            None => span["parentSpanId"] = json!(""),
        }

        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_workflow"),
            text("gen_ai.workflow.name", "prime"),
            text("gen_ai.conversation.id", &record.id),
            int("gen_ai.usage.input_tokens", result.tokens.prompt),
            int("gen_ai.usage.output_tokens", result.tokens.completion),
            text("prime.task", &result.task),
            text("prime.instance", &result.instance),
            text("prime.status", record.status.name()),
            text("prime.outcome", result.outcome.as_deref().unwrap_or_default()),
            json!({"key": "prime.verified", "value": {"boolValue": result.verified}}),
            int("prime.events", record.events),
            text("prime.chain", &record.chain),
        ];
        if let Some(answer) = result.answer.as_ref().filter(|_| self.content) {
            let said = messages("assistant", &answer.to_string());
            attributes.push(text("gen_ai.output.messages", &said));
        }
        if result.outcome.as_deref() == Some("agent_failed") {
            attributes.push(text("error.type", "agent_failed"));
            span["status"] = json!({"code": 2});
        }
        span["attributes"] = Value::Array(attributes);
        span
    }

    /// A request with these spans, and its newline.
    fn line(spans: &[Value]) -> Vec<u8> {
        let version = env!("CARGO_PKG_VERSION");
        let resource = [text("service.name", "prime-agents"), text("service.version", version)];
        let request = json!({"resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": {"name": "prime-agents", "version": version}, "spans": spans}],
        }]});
        let mut line = request.to_string().into_bytes();
        line.push(b'\n');
        line
    }

    /// The spans of some events, as a line; nothing if no event has any.
    fn lines(&mut self, batch: &EventBatch) -> Result<Vec<u8>, RunError> {
        let mut spans = Vec::new();
        for (seq, event) in batch.events() {
            let unreadable =
                |reason: String| RunError::Unreadable(format!("event {seq}: {reason}"));
            match RecordedEvent::read(event).map_err(|error| unreadable(error.to_string()))? {
                RecordedEvent::Step(step) => {
                    spans.extend(self.step(seq, &step).map_err(unreadable)?);
                }
                // The steps of the next round begin after the vote, for which no time is recorded.
                RecordedEvent::Other if event.starts_with(br#"{"event":"voted""#) => {
                    self.round_ms = self.last_ms;
                    self.decided.clear();
                }
                _ => {}
            }
        }
        Ok(if spans.is_empty() { Vec::new() } else { Self::line(&spans) })
    }
}

impl RunReader {
    /// A run that is over as OpenTelemetry spans: lines of OTLP's JSON. With `content`, also what
    /// was asked and answered, as far as the journal has it.
    ///
    /// # Errors
    /// When the run does not exist, is not over, or the journal cannot be read.
    pub async fn otel(
        &self,
        id: &str,
        content: bool,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, RunError>> + use<>, RunError> {
        let (_, record) = self.get(id).await?;
        if !record.status.is_over() {
            return Err(RunError::NotOver(id.to_owned()));
        }
        let row = self.store().row(id).await?;
        let caller = self.store().spec(id).await?.traceparent;
        // `00-TRACE-PARENT-FLAGS`, with ids of 32 and 16 digits.
        let caller = caller.and_then(|header| header.parse::<TraceParent>().ok());
        let caller = caller.map(|caller| caller.to_string());
        let part = |places: std::ops::Range<usize>| {
            caller.as_ref().map(|caller| caller[places].to_owned())
        };
        let spans = Spans {
            trace: part(3..35).unwrap_or_else(|| id_of(id, "trace", 16)),
            root: id_of(id, "", 8),
            parent: part(36..52),
            record,
            began_ms: row.created_ms,
            content,
            decided: HashMap::new(),
            round_ms: 0,
            last_ms: 0,
            last: LastPrompts::default(),
        };

        let root = Spans::line(&[spans.root()]);
        let events = Box::pin(self.events(id, 0, false));
        let lines = stream::try_unfold((events, spans), |(mut events, mut spans)| async move {
            let Some(batch) = events.try_next().await? else { return Ok(None) };
            Ok(Some((spans.lines(&batch)?, (events, spans))))
        });
        Ok(futures::StreamExt::chain(stream::iter([Ok(root)]), lines))
    }
}
