//! How the model of a chat template begins and ends its thinking.

use crate::families::FAMILIES;
use crate::split::CHANNEL;

/// The texts around a model's thinking, spelt as its template spells them. They are tokenized with
/// special tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Begins the thinking.
    pub open: String,
    /// Ends it, where the model writes the end itself.
    pub end: String,
    /// Stands between the end and the answer.
    pub then: String,
    /// Stands instead of the thinking.
    pub skip: String,
}

/// The text as a source spells it, whatever the case of its letters.
fn spelt<'s>(source: &'s str, lower: &str, mark: &str) -> Option<&'s str> {
    let at = lower.find(mark)?;
    source.get(at..at + mark.len())
}

impl Form {
    /// The form of the first family whose marks a template's source has.
    pub fn of_template(source: &str) -> Option<Self> {
        if source.contains(CHANNEL) {
            return Some(Self::harmony());
        }

        // ASCII only, so that places in both texts are the same.
        let lower = source.to_ascii_lowercase();
        FAMILIES.iter().find_map(|family| {
            let open = family.opens.iter().find_map(|mark| spelt(source, &lower, mark))?;
            let known = family.closes.iter().find_map(|mark| spelt(source, &lower, mark));
            let end = match (known, family.closes.first()?) {
                (Some(end), _) => end.to_owned(),
                (None, end) if open.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                    end.to_uppercase()
                }
                (None, end) => (*end).to_owned(),
            };

            // Marks in brackets stand within a line, others on lines of their own.
            let (line, blank) = if open.starts_with('[') { ("", "") } else { ("\n", "\n\n") };
            let open = format!("{open}{line}");
            let skip = format!("{open}{line}{end}{blank}");
            Some(Self { open, end, then: blank.to_owned(), skip })
        })
    }

    /// The form of GPT-OSS, whose answer is a message in the channel `final`.
    fn harmony() -> Self {
        Self {
            open: "<|channel|>analysis<|message|>".to_owned(),
            end: "<|end|>".to_owned(),
            then: "<|start|>assistant<|channel|>final<|message|>".to_owned(),
            skip: "<|channel|>final<|message|>".to_owned(),
        }
    }

    /// Returns whether a rendered prompt ends inside the model's thinking.
    pub fn is_opened_by(&self, prompt: &str) -> bool {
        prompt.trim_end().ends_with(self.open.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(open: &str, end: &str, then: &str, skip: &str) -> Form {
        let [open, end, then, skip] = [open, end, then, skip].map(str::to_owned);
        Form { open, end, then, skip }
    }

    #[test]
    fn a_template_says_how_its_model_thinks() {
        let think = form("<think>\n", "</think>", "\n\n", "<think>\n\n</think>\n\n");
        for (source, expected) in [
            ("{{ '<think>\n\n</think>\n\n' }}", Some(think.clone())),
            ("{{ '<|Assistant|><think>\n' }}", Some(think)),
            ("{{ '[THINK]' }}", Some(form("[THINK]", "[/THINK]", "", "[THINK][/THINK]"))),
            (
                "{{ '<|channel|>analysis<|message|>' }}",
                Some(form(
                    "<|channel|>analysis<|message|>",
                    "<|end|>",
                    "<|start|>assistant<|channel|>final<|message|>",
                    "<|channel|>final<|message|>",
                )),
            ),
            ("{{ messages[0].content }}", None),
        ] {
            assert_eq!(Form::of_template(source), expected, "{source}");
        }
    }

    #[test]
    fn a_prompt_that_ends_with_the_opening_mark_is_open() {
        let form = Form::of_template("<think>").expect("a form");
        assert!(form.is_opened_by("x<think>\n") && form.is_opened_by("x<think>"));
        assert!(!form.is_opened_by("x<think>\n\n</think>\n\n") && !form.is_opened_by("x"));
    }
}
