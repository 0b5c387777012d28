//! What models were sent and what they answered, as a journal keeps it: each prompt without the
//! prefix that it shares with the previous one. Prompts begin with their constant part, so the rest
//! is a fraction of their length.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use prime_protocol::Role;
use prime_runtime::Exchange;

/// A request to a model and its answer, without what its prompt shares with the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SentExchange {
    /// Who asked.
    pub role: Role,
    /// Length in bytes of the prefix that this prompt shares with the role's previous prompt in the
    /// run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared: usize,
    /// The prompt after them.
    pub prompt: String,
    /// True if the prompt is messages as JSON, which a server puts into its template; otherwise it
    /// is what the model read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub messages: bool,
    /// Length of the shared prefix in tokens, where they are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_tokens: usize,
    /// Token ids of the prompt after the shared ones, where they are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt_tokens: Vec<u32>,
    /// What the model wrote; left out where there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Token ids of the answer, where they are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer_tokens: Vec<u32>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The last prompt of each role, with which the next one is compared. One writer or reader of a
/// run's events uses it, in their order.
#[derive(Debug, Default)]
pub struct LastPrompts(BTreeMap<Role, (String, Vec<u32>)>);

impl LastPrompts {
    /// Leaves out what the prompt shares with the last one of the role.
    pub fn pack(&mut self, role: Role, exchange: Exchange) -> SentExchange {
        let (last, last_tokens) = self.0.entry(role).or_default();

        let mut shared = common(last.as_bytes(), exchange.prompt.as_bytes());
        while !exchange.prompt.is_char_boundary(shared) {
            shared -= 1;
        }
        let shared_tokens = common(last_tokens, &exchange.prompt_tokens);

        let sent = SentExchange {
            role,
            shared,
            prompt: exchange.prompt[shared..].to_owned(),
            messages: exchange.is_messages,
            shared_tokens,
            prompt_tokens: exchange.prompt_tokens[shared_tokens..].to_vec(),
            answer: exchange.answer,
            answer_tokens: exchange.answer_tokens,
            failure: exchange.failure,
        };
        (*last, *last_tokens) = (exchange.prompt, exchange.prompt_tokens);
        sent
    }

    /// Puts back what was left out: nothing is shared any more.
    ///
    /// # Errors
    /// It shares more than the last prompt has: an event before it is missing.
    pub fn unpack(&mut self, mut sent: SentExchange) -> Result<SentExchange, String> {
        let (last, last_tokens) = self.0.entry(sent.role).or_default();
        let missing = || "an exchange shares more than the one before it has".to_owned();

        sent.prompt.insert_str(0, last.get(..sent.shared).ok_or_else(missing)?);
        let tokens = last_tokens.get(..sent.shared_tokens).ok_or_else(missing)?;
        sent.prompt_tokens.splice(0..0, tokens.iter().copied());
        (sent.shared, sent.shared_tokens) = (0, 0);

        last.clone_from(&sent.prompt);
        last_tokens.clone_from(&sent.prompt_tokens);
        Ok(sent)
    }
}

/// Length of the common prefix of two sequences.
fn common<T: PartialEq>(left: &[T], right: &[T]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(prompt: &str, prompt_tokens: &[u32], answer: Option<&str>) -> Exchange {
        Exchange {
            prompt: prompt.to_owned(),
            prompt_tokens: prompt_tokens.to_vec(),
            answer: answer.map(str::to_owned),
            answer_tokens: vec![7],
            ..Exchange::default()
        }
    }

    #[test]
    fn a_prompt_is_kept_without_what_the_last_one_of_its_role_began_with() {
        let mut packing = LastPrompts::default();
        let first = packing.pack(Role::Executor, exchange("task: a", &[1, 2, 3], Some("x")));
        assert_eq!((first.shared, first.prompt.as_str()), (0, "task: a"));
        assert_eq!(
            serde_json::to_string(&first).expect("JSON"),
            concat!(
                r#"{"role":"executor","prompt":"task: a","prompt_tokens":[1,2,3],"#,
                r#""answer":"x","answer_tokens":[7]}"#
            )
        );

        let judge = packing.pack(Role::Verifier, exchange("task: a", &[], None));
        assert_eq!(judge.shared, 0, "another role");

        let second = packing.pack(Role::Executor, exchange("task: bc", &[1, 2, 9], Some("y")));
        assert_eq!((second.shared, second.prompt.as_str()), (6, "bc"));
        assert_eq!((second.shared_tokens, second.prompt_tokens.as_slice()), (2, &[9][..]));

        let mut reading = LastPrompts::default();
        let whole = |sent: &SentExchange, reading: &mut LastPrompts| {
            let sent = reading.unpack(sent.clone()).expect("complete");
            (sent.prompt, sent.prompt_tokens)
        };
        assert_eq!(whole(&first, &mut reading), ("task: a".to_owned(), vec![1, 2, 3]));
        assert_eq!(whole(&judge, &mut reading), ("task: a".to_owned(), vec![]));
        assert_eq!(whole(&second, &mut reading), ("task: bc".to_owned(), vec![1, 2, 9]));

        // A process that resumes the run starts without a previous prompt.
        let resumed = LastPrompts::default()
            .pack(Role::Executor, exchange("task: bd", &[1, 2, 9], Some("z")));
        assert_eq!(whole(&resumed, &mut reading), ("task: bd".to_owned(), vec![1, 2, 9]));
    }

    #[test]
    fn a_character_is_never_cut_and_a_gap_is_noticed() {
        let mut packing = LastPrompts::default();
        packing.pack(Role::Executor, exchange("n\u{e9}", &[], None));
        // Both are two bytes that begin with the same one.
        let sent = packing.pack(Role::Executor, exchange("n\u{e8}", &[], None));
        assert_eq!((sent.shared, sent.prompt.as_str()), (1, "\u{e8}"));

        assert!(LastPrompts::default().unpack(sent).is_err());
        let whole = packing.pack(Role::Verifier, exchange("v", &[1], None));
        let tokens = SentExchange { shared_tokens: 1, ..whole };
        assert!(LastPrompts::default().unpack(tokens).is_err());
    }
}
