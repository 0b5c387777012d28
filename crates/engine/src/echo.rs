//! A worker without a model: answers every turn at once with the same text. What lies between a caller and its model is
//! measured with it.

use super::port::{Intake, Port};
use super::wire::{Facts, FromWorker, ToWorker};
use super::{Finish, Generation};

/// Serves until the parent is gone.
pub(super) fn serve(text: &str, port: &mut impl Port) {
    let facts = Facts { model: "none: every answer is the same".to_owned(), ..Facts::default() };
    port.put(FromWorker::Ready(facts));
    port.flush();
    let mut wait = true;
    loop {
        match port.take(wait) {
            Intake::Frame(ToWorker::Turn(turn)) => {
                let generation = Generation {
                    text: text.to_owned(),
                    tokens: Vec::new(),
                    logprobs: Vec::new(),
                    prompt_tokens: 0,
                    finish: Finish::EndOfText,
                };
                port.put(FromWorker::Done { id: turn.id, result: Ok(generation) });
                wait = false;
            }
            // What is cancelled was answered already.
            Intake::Frame(ToWorker::Cancel(_) | ToWorker::Start { .. }) => {}
            // All that has come is answered: the answers go together.
            Intake::Nothing => {
                port.flush();
                wait = true;
            }
            Intake::Closed => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::wire::{Turn, TurnId};
    use super::super::{Format, Request, Sampling};
    use super::*;

    /// Gives these frames, `None` for a moment without one, and keeps what is put, with a mark where it was flushed.
    struct Script {
        frames: VecDeque<Option<ToWorker<'static>>>,
        out: Vec<String>,
    }

    impl Port for Script {
        fn take(&mut self, wait: bool) -> Intake {
            match self.frames.pop_front() {
                Some(Some(frame)) => Intake::Frame(frame),
                Some(None) if wait => self.take(wait),
                Some(None) => Intake::Nothing,
                None => Intake::Closed,
            }
        }

        fn put(&mut self, frame: FromWorker) {
            self.out.push(match frame {
                FromWorker::Ready(_) => "ready".to_owned(),
                FromWorker::Done { id, result } => format!("{} {}", id.0, result.expect("an answer").text),
                _ => "other".to_owned(),
            });
        }

        fn flush(&mut self) {
            self.out.push("flush".to_owned());
        }
    }

    #[test]
    fn what_comes_together_is_answered_together() {
        let request = Request {
            prompt: "any".to_owned(),
            format: Format::Raw,
            grammar: None,
            sampling: Sampling::GREEDY,
            max_tokens: 1,
            logprobs: false,
            ignore_end: false,
            group: 0,
        };
        let turn = |id| Some(ToWorker::Turn(Turn::new(TurnId(id), &request).into_owned()));
        let frames = [turn(1), turn(2), None, None, turn(3), Some(ToWorker::Cancel(TurnId(3))), None];
        let mut port = Script { frames: frames.into(), out: Vec::new() };
        serve("step", &mut port);
        assert_eq!(port.out, ["ready", "flush", "1 step", "2 step", "flush", "3 step", "flush"]);
    }
}
