//! Counts and extremes of consecutive steps. They add up: the summaries of blocks give that of all
//! their steps.

use super::step::Finding;

/// What consecutive steps add up to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub depth_min: u32,
    pub depth_max: u32,
    /// Depth of the last step.
    pub depth_end: u32,
    pub retries: u32,
    pub backtracks: u32,
    pub pops: u32,
    pub flagged: u32,
    /// The highest score, and the position of the first step with it.
    pub worst: Option<(f32, usize)>,
    /// A bit for each violated constraint.
    pub violations: u64,
}

impl Summary {
    /// The summary of no steps.
    pub const EMPTY: Self = Self {
        depth_min: u32::MAX,
        depth_max: 0,
        depth_end: 0,
        retries: 0,
        backtracks: 0,
        pops: 0,
        flagged: 0,
        worst: None,
        violations: 0,
    };

    /// Adds a step at this depth. Findings are added separately.
    pub fn add_depth(&mut self, depth: u32) {
        self.depth_min = self.depth_min.min(depth);
        self.depth_max = self.depth_max.max(depth);
        self.depth_end = depth;
    }

    pub fn add_finding(&mut self, finding: &Finding) {
        self.retries += u32::from(finding.is_retry);
        self.backtracks += u32::from(finding.is_backtrack);
        self.pops += finding.pops;
        self.flagged += u32::from(finding.is_flagged);
        self.violations |= finding.violations;
        if finding.score > self.worst.map_or(0.0, |(worst, _)| worst) {
            self.worst = Some((finding.score, finding.position));
        }
    }

    /// Adds the steps after these.
    pub fn append(&mut self, later: &Self) {
        self.depth_min = self.depth_min.min(later.depth_min);
        self.depth_max = self.depth_max.max(later.depth_max);
        self.depth_end = later.depth_end;
        self.retries += later.retries;
        self.backtracks += later.backtracks;
        self.pops += later.pops;
        self.flagged += later.flagged;
        self.violations |= later.violations;
        let worst = |of: &Self| of.worst.map_or(0.0, |(score, _)| score);
        if worst(later) > worst(self) {
            self.worst = later.worst;
        }
    }
}
