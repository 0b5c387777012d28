//! Tells the listener of a turn what a server writes, while it arrives.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prime_roles::live::{self, Writing};
use tokio::time::Instant;

/// Minimum time between two reports of the text.
const PAUSE: Duration = Duration::from_millis(200);

/// Maximum bytes of a text that are reported: its end, which is what readers watch.
const TEXT_BYTES_MAX: usize = 4096;

/// A part of a completion, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// Thinking.
    Thought(&'a str),
    /// A part of the answer.
    Text(&'a str),
    /// What was written so far does not count: the request is sent again.
    Restarted,
}

/// Receives what a model writes, part by part, in order. It is called on the thread of the
/// connection, so it must return quickly and must not panic. The text comes from a model or server:
/// it is untrusted until it is cleaned.
#[derive(Clone)]
pub struct Hearer(Arc<dyn Fn(Written<'_>) + Send + Sync>);

impl Hearer {
    /// Calls `hear` with each part.
    pub fn new(hear: impl Fn(Written<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// A hearer that reports the text so far to the listener of the current turn, a few times a
    /// second; `None` if the turn has no listener. An agent calls this while its future is polled.
    pub fn of_turn() -> Option<Self> {
        let listener = live::listener()?;
        let so_far = Mutex::new(SoFar::default());
        Some(Self::new(move |written| {
            let told = so_far.lock().unwrap_or_else(PoisonError::into_inner).take(written);
            if let Some(text) = told {
                listener.writes(Writing { text, prompt: None });
            }
        }))
    }

    /// Passes on a part.
    pub fn tell(&self, written: Written<'_>) {
        (self.0)(written);
    }
}

impl std::fmt::Debug for Hearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hearer")
    }
}

impl PartialEq for Hearer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The text so far, and when it was last reported.
#[derive(Default)]
struct SoFar {
    text: String,
    is_thought: bool,
    told_at: Option<Instant>,
}

impl SoFar {
    /// Takes a part; returns the text if it is to be reported now.
    fn take(&mut self, written: Written<'_>) -> Option<String> {
        let (part, is_thought) = match written {
            Written::Thought(part) => (part, true),
            Written::Text(part) => (part, false),
            Written::Restarted => {
                *self = Self { told_at: self.told_at, ..Self::default() };
                return Some(String::new());
            }
        };
        if self.is_thought && !is_thought {
            self.text.push('\n');
        }
        self.is_thought = is_thought;
        self.text.push_str(part);
        let start = self.text.floor_char_boundary(self.text.len().saturating_sub(TEXT_BYTES_MAX));
        self.text.drain(..start);

        let is_due = self.told_at.is_none_or(|at| at.elapsed() >= PAUSE);
        is_due.then(|| {
            self.told_at = Some(Instant::now());
            self.text.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(parts: &[Written<'_>]) -> Vec<String> {
        let mut so_far = SoFar::default();
        let told = parts.iter().filter_map(|part| {
            // As if each came after a pause.
            so_far.told_at = None;
            so_far.take(*part)
        });
        told.collect()
    }

    #[test]
    fn the_text_so_far_is_told_and_begins_anew_with_the_request() {
        let parts = [
            Written::Thought("so "),
            Written::Thought("what"),
            Written::Text("move"),
            Written::Restarted,
            Written::Text("m"),
        ];
        assert_eq!(told(&parts), ["so ", "so what", "so what\nmove", "", "m"]);
    }

    #[test]
    fn of_a_long_text_the_end_is_told() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let [told] = &told(&[Written::Text(&long)])[..] else { panic!("once") };
        assert!(told.len() <= TEXT_BYTES_MAX + 1 && told.ends_with("éé"), "{}", told.len());
    }
}
