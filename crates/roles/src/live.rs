//! What a model writes while an agent waits for it: a listener is at hand while the agent's future
//! is polled, and whoever asks a model takes it along.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

/// How far an answer is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// The text so far; of a long one the end. As the model wrote it: not safe to print.
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

/// Hears what is written. It may be called on any thread, must return at once, and must not panic.
/// A writer calls it a few times a second, not for every token.
pub type Listener = Arc<dyn Fn(Writing) + Send + Sync>;

thread_local! {
    /// The listener of the agent whose future is being polled.
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Whoever wants to hear what is written for the turn at hand. Called by an agent while its future
/// is polled.
pub fn listener() -> Option<Listener> {
    LISTENER.with_borrow(Clone::clone)
}

/// Polls an agent's future with a listener at hand.
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

/// A future that has a listener at hand whenever it is polled, on whatever thread.
pub async fn within<F: Future>(listener: Option<Listener>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| heard(listener.as_ref(), || future.as_mut().poll(context))).await
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use super::*;

    fn keeping(texts: &Arc<Mutex<Vec<String>>>) -> Listener {
        let texts = Arc::clone(texts);
        Arc::new(move |writing: Writing| texts.lock().expect("unpoisoned").push(writing.text))
    }

    fn write(text: &str) {
        if let Some(listener) = listener() {
            listener(Writing { text: text.to_owned(), prompt: None });
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
}
