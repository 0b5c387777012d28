//! What a model writes while an agent waits for it, and what it was sent. A listener is set while
//! the agent's future is polled; code that asks a model takes it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

/// The progress of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// The text so far, or the end of a long text. It is as the model wrote it: not safe to print.
    pub text: String,
    /// How much of the prompt the model has read, where known.
    pub prompt: Option<PromptRead>,
}

/// How much of a prompt a model has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptRead {
    /// Tokens that are computed or were cached, at most `tokens`.
    pub read: u32,
    /// Tokens of the prompt.
    pub tokens: u32,
}

/// How much of the requests to models and of their answers is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Neither texts nor tokens.
    #[default]
    Nothing,
    /// The texts.
    Text,
    /// The texts and their tokens.
    Tokens,
}

/// A request to a model, and its answer, as they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What the model read, chat template included; for a server its messages, as JSON.
    pub prompt: String,
    /// True if `prompt` is the messages, which the server puts into a template.
    pub is_messages: bool,
    /// The prompt's tokens, where wanted and known.
    pub prompt_tokens: Vec<u32>,
    /// What it wrote; `None` if there is no answer.
    pub answer: Option<String>,
    /// The answer's tokens, where wanted and known.
    pub answer_tokens: Vec<u32>,
    /// Why there is no answer.
    pub failure: Option<String>,
}

/// Hears what is written and what was sent. It may be called on any thread, must return at once,
/// and must not panic.
pub trait Listen: Send + Sync {
    /// Called a few times a second with what is written so far, not for every token.
    fn writes(&self, writing: Writing);

    /// What [`Listen::exchanged`] should get.
    fn keeps(&self) -> Kept {
        Kept::Nothing
    }

    /// Called when a request is over.
    fn exchanged(&self, _exchange: Exchange) {}
}

impl<F: Fn(Writing) + Send + Sync> Listen for F {
    fn writes(&self, writing: Writing) {
        self(writing);
    }
}

/// Shared by all requests to models of one turn.
pub type Listener = Arc<dyn Listen>;

/// Passes on what is written at once. Holds exchanges back until it is known whether they count,
/// for a proposal that was begun early.
pub struct Held {
    listener: Listener,
    exchanges: Mutex<Vec<Exchange>>,
}

impl Held {
    /// A listener that hands on to `listener`.
    pub fn new(listener: Listener) -> Arc<Self> {
        Arc::new(Self { listener, exchanges: Mutex::default() })
    }

    /// Passes on what was sent so far.
    pub fn release(&self) {
        let held =
            std::mem::take(&mut *self.exchanges.lock().unwrap_or_else(PoisonError::into_inner));
        held.into_iter().for_each(|exchange| self.listener.exchanged(exchange));
    }
}

impl Listen for Held {
    fn writes(&self, writing: Writing) {
        self.listener.writes(writing);
    }

    fn keeps(&self) -> Kept {
        self.listener.keeps()
    }

    fn exchanged(&self, exchange: Exchange) {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }
}

thread_local! {
    /// The listener of the agent whose future is being polled.
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// The listener of the current turn, if it has one. Agents call this while their future is polled.
pub fn listener() -> Option<Listener> {
    LISTENER.with_borrow(Clone::clone)
}

/// Polls an agent's future with this listener set.
pub fn heard<T>(listener: Option<&Listener>, poll: impl FnOnce() -> T) -> T {
    /// Puts the outer listener back, also when the poll panics.
    struct Restore(Option<Listener>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LISTENER.set(self.0.take());
        }
    }

    let _outer = Restore(LISTENER.replace(listener.cloned()));
    poll()
}

/// Sets the listener whenever the future is polled, on any thread.
pub async fn within<F: Future>(listener: Option<Listener>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| heard(listener.as_ref(), || future.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn keeping(texts: &Arc<Mutex<Vec<String>>>) -> Listener {
        let texts = Arc::clone(texts);
        Arc::new(move |writing: Writing| texts.lock().expect("unpoisoned").push(writing.text))
    }

    fn write(text: &str) {
        if let Some(listener) = listener() {
            listener.writes(Writing { text: text.to_owned(), prompt: None });
        }
    }

    #[test]
    fn only_the_turn_at_hand_is_heard() {
        let (outer, inner) = (Arc::default(), Arc::default());
        write("before");
        heard(Some(&keeping(&outer)), || {
            write("a");
            heard(Some(&keeping(&inner)), || write("b"));
            heard(None, || write("unheard"));
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                heard(Some(&keeping(&inner)), || panic!("as agents may"));
            }));
            assert!(panicked.is_err());
            write("c");
        });
        write("after");
        assert_eq!(*outer.lock().expect("unpoisoned"), ["a", "c"]);
        assert_eq!(*inner.lock().expect("unpoisoned"), ["b"]);
    }

    #[derive(Default)]
    struct Keeps(Mutex<Vec<String>>);

    impl Listen for Keeps {
        fn writes(&self, _: Writing) {}

        fn keeps(&self) -> Kept {
            Kept::Text
        }

        fn exchanged(&self, exchange: Exchange) {
            self.0.lock().expect("unpoisoned").push(exchange.prompt);
        }
    }

    #[test]
    fn what_was_begun_early_counts_once_it_is_released() {
        let keeps = Arc::new(Keeps::default());
        let held = Held::new(Arc::clone(&keeps) as Listener);
        assert_eq!(held.keeps(), Kept::Text);
        held.exchanged(Exchange { prompt: "early".to_owned(), ..Exchange::default() });
        keeps.exchanged(Exchange { prompt: "now".to_owned(), ..Exchange::default() });
        held.release();
        held.release();
        assert_eq!(*keeps.0.lock().expect("unpoisoned"), ["now", "early"]);
    }
}
