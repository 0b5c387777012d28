//! Whether a record can be of the instance that it names: the benchmark makes the instance again
//! and judges the answer again.

use prime_bench::tasks::{Difficulty, InstanceId, Kind, Kinds, Problem, find};

use super::record::Record;

impl Record {
    /// The instance of the benchmark that it names.
    ///
    /// # Errors
    /// The benchmark has none like that, in words.
    pub(super) fn instance(&self) -> Result<InstanceId, String> {
        let task = find(&self.task).map_err(|error| error.to_string())?;
        let difficulty: Difficulty = self
            .difficulty
            .parse()
            .map_err(|_| format!("the benchmark has no level `{}`", self.difficulty))?;

        let category = task.spec().category.name();
        if self.category != category {
            return Err(format!("category is `{}`, and the task's is `{category}`", self.category));
        }
        InstanceId::new(task, difficulty, self.index, self.base_seed)
            .map_err(|error| error.to_string())
    }

    /// What in the record contradicts its instance, in words. `problem` is that instance.
    pub(super) fn contradicts(&self, problem: &dyn Problem) -> Option<String> {
        // A run that was not measured may not have got so far as to read its instance.
        if !self.is_measured() {
            return None;
        }

        let mut made = self.clone();
        made.set_problem(problem);
        if self.input_digest.is_some() && self.input_digest != made.input_digest {
            return Some(
                "input_digest is of another input than the benchmark's: the record was made by \
                 another version of the task, or changed"
                    .to_owned(),
            );
        }
        if self.size.is_some() && self.size != made.size {
            let size = made.size.map_or("none".to_owned(), |size| size.to_string());
            return Some(format!("size is {}, and the instance's is {size}", self.size?));
        }

        let kinds: Kinds =
            self.checked_kinds.split(',').filter_map(|kind| kind.parse::<Kind>().ok()).collect();
        made.set_kinds(kinds, problem.sound());
        if self.sound == Some(true) && made.sound != Some(true) {
            return Some(format!(
                "sound is true, but {} let wrong answers to this task through",
                self.checked_kinds
            ));
        }
        self.misjudged(problem)
    }

    /// Where `right` is not what the benchmark says of the answer.
    fn misjudged(&self, problem: &dyn Problem) -> Option<String> {
        let Some(text) = &self.answer else {
            return self.right.then(|| "right without an answer".to_owned());
        };
        let answer = match serde_json::from_str(text) {
            Ok(answer) => answer,
            Err(error) => return Some(format!("answer is not JSON: {error}")),
        };
        let is_right = problem.accepts(&answer);
        (self.right != is_right).then(|| {
            let says = if is_right { "accepts" } else { "does not accept" };
            format!("right is {}, but the benchmark {says} the answer", self.right)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    type Change = fn(&mut Record);

    /// A right run of the benchmark's instance.
    fn genuine() -> Record {
        let mut genuine = record("prime", "gcd-euclidean", 3);
        let problem = genuine.instance().unwrap().problem();
        genuine.set_problem(problem.as_ref());
        genuine.answer = Some(problem.reference().answer.to_string());
        genuine
    }

    fn contradiction(record: &Record) -> Option<String> {
        let problem = genuine().instance().unwrap().problem();
        record.contradicts(problem.as_ref())
    }

    #[test]
    fn what_the_benchmark_contradicts_is_named() {
        assert_eq!(contradiction(&genuine()), None);

        let changes: [(Change, &str); 6] = [
            (|record| record.input_digest = Some("0".repeat(16)), "input_digest is of another"),
            (|record| record.size = Some(1_000_000), "size is 1000000"),
            (|record| record.answer = Some("{\"gcd\":0}".to_owned()), "does not accept"),
            (|record| record.right = false, "right is false, but the benchmark accepts"),
            (|record| record.answer = Some("{".to_owned()), "answer is not JSON"),
            (|record| record.answer = None, "right without an answer"),
        ];
        for (change, expected) in changes {
            let mut changed = genuine();
            change(&mut changed);
            let found = contradiction(&changed).unwrap_or_default();
            assert!(found.contains(expected), "{expected:?} in {found:?}");
        }

        let mut formless = genuine();
        (formless.checked_kinds, formless.sound) = ("format".to_owned(), Some(true));
        let found = contradiction(&formless).unwrap_or_default();
        assert!(found.contains("sound is true, but format let"), "{found:?}");

        let mut lost = genuine();
        (lost.status, lost.input_digest) = (crate::records::Status::NotMeasured, None);
        (lost.right, lost.answer) = (false, None);
        assert_eq!(contradiction(&lost), None);
    }

    #[test]
    fn an_instance_that_the_benchmark_does_not_have_is_named() {
        let changes: [(Change, &str); 4] = [
            (|record| record.task = "travel".to_owned(), "travel"),
            (|record| record.difficulty = "extreme".to_owned(), "no level `extreme`"),
            (|record| record.category = "sorting".to_owned(), "category is `sorting`"),
            (|record| record.index = 1_000_000, "out of range"),
        ];
        for (change, expected) in changes {
            let mut changed = genuine();
            change(&mut changed);
            let error = changed.instance().unwrap_err();
            assert!(error.contains(expected), "{expected:?} in {error:?}");
        }
    }
}
