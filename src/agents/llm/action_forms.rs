//! Which forms of actions the next proposal at a state may take, so that an executor that is sure of the wrong form of
//! action comes to the others before it has tried every line of that form.

use prime_bench::tasks::pattern;

/// How many more lines of a form may be rejected than of the least rejected one.
const LEAD: u32 = 2;

/// A set of forms: bit k stands for the k-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Forms(u64);

impl Forms {
    pub const ALL: Self = Self(u64::MAX);

    /// The forms that are left where these lines were rejected: those that are not rejected more often than others.
    pub fn left<'l>(forms: &[&str], rejected: impl Iterator<Item = &'l str>) -> Self {
        let mut counts = vec![0; forms.len().min(64)];
        for (form, _) in rejected.filter_map(|line| pattern::parse(forms, line)) {
            if let Some(count) = counts.get_mut(form) {
                *count += 1;
            }
        }
        // A form without fields is one line: once that is rejected, it has nothing left.
        let is_open = |(form, count): (&&str, &u32)| *count == 0 || form.contains('<');
        let open = forms.iter().zip(&counts).filter(|form| is_open(*form));
        let Some(least) = open.map(|(_, count)| *count).min() else { return Self::ALL };
        let kept = counts.iter().enumerate().filter(|(_, count)| **count < least + LEAD);
        let bits = kept.fold(0_u64, |bits, (form, _)| bits | 1 << form);
        if bits.count_ones() as usize == forms.len() { Self::ALL } else { Self(bits) }
    }

    pub fn of<'f>(self, forms: &[&'f str]) -> Vec<&'f str> {
        let is_kept = |form: usize| self == Self::ALL || (form < 64 && self.0 >> form & 1 == 1);
        forms.iter().enumerate().filter(|(form, _)| is_kept(*form)).map(|(_, form)| *form).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [&str; 4] = ["cmp <nat> <nat>", "swap <nat> <nat>", "pass", "done"];

    fn left(rejected: &[&str]) -> Vec<&'static str> {
        Forms::left(&FORMS, rejected.iter().copied()).of(&FORMS)
    }

    #[test]
    fn a_form_that_was_rejected_twice_gives_way_to_the_others() {
        assert_eq!(left(&[]), FORMS);
        assert_eq!(left(&["cmp 0 1"]), FORMS);
        assert_eq!(left(&["cmp 0 1", "cmp 1 2"]), FORMS[1..]);
        assert_eq!(left(&["cmp 0 1", "cmp 1 2", "swap 0 1", "swap 1 2"]), FORMS[2..]);
        assert_eq!(left(&["cmp 0 1", "cmp 1 2", "nonsense"]), FORMS[1..]);
    }

    #[test]
    fn a_form_with_one_line_does_not_hold_the_others_back() {
        let mut rejected = vec!["cmp 0 1", "cmp 1 2", "swap 0 1", "swap 1 2", "pass", "done"];
        assert_eq!(left(&rejected), FORMS);
        rejected.push("cmp 2 3");
        assert_eq!(left(&rejected), FORMS);
        rejected.push("cmp 3 4");
        assert_eq!(left(&rejected), FORMS[1..]);
    }

    #[test]
    fn one_form_is_never_left_out() {
        let forms = ["put <nat>"];
        let lines: Vec<String> = (0..9).map(|at| format!("put {at}")).collect();
        assert_eq!(Forms::left(&forms, lines.iter().map(String::as_str)), Forms::ALL);
    }
}
