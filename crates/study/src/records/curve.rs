//! The curve of a run: whether its answer was right, by the tokens that it had spent.

use super::record::Record;

/// A number of spent tokens, and whether the answer is right from there on.
pub type Point = (u64, bool);

impl Record {
    /// The points of its curve, with ascending tokens; `None` if it has no curve or a malformed
    /// one.
    pub fn points(&self) -> Option<Vec<Point>> {
        let points: Vec<Point> = serde_json::from_str(self.curve.as_deref()?).ok()?;
        points.is_sorted_by_key(|(tokens, _)| *tokens).then_some(points)
    }

    /// Sets the curve. Points at which nothing changes are left out; of several points at the same
    /// number of tokens, the last one counts.
    pub fn set_curve(&mut self, points: impl IntoIterator<Item = Point>) {
        let mut kept: Vec<Point> = Vec::new();
        for (tokens, is_right) in points {
            while kept.last().is_some_and(|(last, _)| *last >= tokens) {
                kept.pop();
            }
            if kept.last().is_none_or(|(_, before)| *before != is_right) {
                kept.push((tokens, is_right));
            }
        }
        self.curve = Some(serde_json::to_string(&kept).expect("invariant: pairs serialise"));
    }
}

/// True if the answer of a run with these points would have been right if it had been ended at this
/// many tokens.
pub(crate) fn is_right_at(points: &[Point], tokens: u64) -> bool {
    let last = points.iter().rev().find(|(from, _)| *from <= tokens);
    last.is_some_and(|(_, is_right)| *is_right)
}

#[cfg(test)]
mod tests {
    use super::is_right_at;
    use crate::testing::record;

    #[test]
    fn a_curve_keeps_the_points_at_which_the_answer_changes() {
        let mut run = record("a", "n-queens", 0);
        assert_eq!(run.points(), None);
        run.set_curve([(10, false), (20, false), (30, true), (40, true), (40, false)]);
        assert_eq!(run.curve.as_deref(), Some("[[10,false],[30,true],[40,false]]"));

        let points = run.points().unwrap();
        let at = |tokens| is_right_at(&points, tokens);
        assert_eq!(
            [at(0), at(10), at(29), at(30), at(39), at(40)],
            [false, false, false, true, true, false]
        );
        run.set_curve([]);
        assert_eq!(run.points(), Some(Vec::new()));
    }
}
