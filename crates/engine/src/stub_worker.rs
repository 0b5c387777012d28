//! A worker without a model that answers every turn at once with the same text.
//!
//! The load test uses it to measure the overhead between a caller and its model, so it is part of
//! the product.

use super::transport::{Received, Transport};
use super::wire::{Facts, FromWorker, Timing, ToWorker};
use super::{Finish, Generation};

/// Serves until the parent closes the transport.
pub(super) fn serve(text: &str, transport: &mut impl Transport) {
    let facts = Facts { model: "none: every answer is the same".to_owned(), ..Facts::default() };

    // Waits only while no answer is left to flush.
    let mut wait = true;
    loop {
        match transport.recv(wait) {
            Received::Frame(ToWorker::Open { context, .. }) => {
                transport.send(FromWorker::Ready { context, facts: facts.clone() });
                wait = false;
            }
            Received::Frame(ToWorker::Turn(turn)) => {
                let generation = Generation {
                    text: text.to_owned(),
                    tokens: Vec::new(),
                    logprobs: Vec::new(),
                    prompt_tokens: 0,
                    cached_tokens: 0,
                    thought: String::new(),
                    thought_tokens: 0,
                    finish: Finish::EndOfText,
                    sent: None,
                };
                let timing = turn.timed.then(Timing::default);
                transport.send(FromWorker::Done { id: turn.id, result: Ok(generation), timing });
                wait = false;
            }
            // A cancelled turn was answered already.
            Received::Frame(ToWorker::Cancel(_) | ToWorker::Close(_) | ToWorker::Start { .. }) => {}
            // Every turn that arrived is answered: send the answers together.
            Received::Empty => {
                transport.flush();
                wait = true;
            }
            Received::Closed => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::wire::{ContextId, Turn, TurnId};
    use super::super::{Format, Request, Sampling};
    use super::*;

    /// Delivers these frames (`None` is a moment without one), and records what is sent and
    /// flushed.
    struct Script {
        frames: VecDeque<Option<ToWorker<'static>>>,
        out: Vec<String>,
    }

    impl Transport for Script {
        fn recv(&mut self, wait: bool) -> Received {
            match self.frames.pop_front() {
                Some(Some(frame)) => Received::Frame(frame),
                Some(None) if wait => self.recv(wait),
                Some(None) => Received::Empty,
                None => Received::Closed,
            }
        }

        fn send(&mut self, frame: FromWorker) {
            self.out.push(match frame {
                FromWorker::Ready { .. } => "ready".to_owned(),
                FromWorker::Done { id, result, .. } => {
                    format!("{} {}", id.0, result.expect("an answer").text)
                }
                _ => "other".to_owned(),
            });
        }

        fn flush(&mut self) {
            self.out.push("flush".to_owned());
        }
    }

    #[test]
    fn turns_that_arrive_together_are_answered_together() {
        let request = Request {
            prompt: "any".to_owned(),
            format: Format::Raw,
            grammar: None,
            excluded: Vec::new(),
            excluded_prefixes: Vec::new(),
            stop: None,
            newline_ends: false,
            thinking: crate::Thinking::AsModel,
            sampling: Sampling::GREEDY,
            max_tokens: 1,
            logprobs: false,
            ignore_end: false,
            group: 0,
            space: 0,
        };

        let turn =
            |id| Some(ToWorker::Turn(Turn::new(TurnId(id), ContextId(0), &request).into_owned()));
        let open = Some(ToWorker::Open { context: ContextId(0), spec: Box::default() });
        let cancel = Some(ToWorker::Cancel(TurnId(3)));
        let frames = [open, None, turn(1), turn(2), None, None, turn(3), cancel, None];

        let mut transport = Script { frames: frames.into(), out: Vec::new() };

        serve("step", &mut transport);

        assert_eq!(
            transport.out,
            ["ready", "flush", "1 step", "2 step", "flush", "3 step", "flush"]
        );
    }
}
