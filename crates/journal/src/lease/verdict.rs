//! Decides what happened to a commit that the store refused, or that was sent again because its
//! answer was lost.

use super::messages::{Epoch, NodeId};

/// One run in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<R> {
    /// The run.
    pub run: R,
    /// `None` for a run that the commit accepts.
    pub epoch: Option<Epoch>,
    /// The run's last event before the commit.
    pub base: u64,
}

/// A run as found in the store after the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The epoch of its last holder.
    pub epoch: Epoch,
    /// The node that holds it, if any does.
    pub holder: Option<NodeId>,
    /// The number of its last committed event.
    pub last_seq: u64,
}

/// What happened to a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<R> {
    /// An earlier attempt of this commit was applied.
    Committed,
    /// Nothing was applied, nor ever will be: these runs belong to others, or were never the
    /// node's. The rest may be committed under the next number.
    Refused {
        /// Runs whose lease the node has lost.
        lost: Vec<R>,
        /// Runs that the commit accepts although the store has them already.
        exists: Vec<R>,
    },
    /// The store has forgotten the node.
    Forgotten,
    /// The store lost events that it had confirmed, for example because it was restored from a
    /// backup.
    StoreLostEvents(R),
}

/// Judges the refused commit `number` of `node`: `stored` is the node's last number in the store,
/// and `found` are the claimed runs as they are there, in the order of `claims`. Both must be read
/// after the refusal.
pub fn judge<R: Clone>(
    node: NodeId,
    number: u64,
    stored: Option<u64>,
    claims: &[Claim<R>],
    found: &[Option<Found>],
) -> Verdict<R> {
    let Some(stored) = stored else { return Verdict::Forgotten };
    if stored >= number {
        return Verdict::Committed;
    }

    let (mut lost, mut exists) = (Vec::new(), Vec::new());
    for (claim, found) in claims.iter().zip(found) {
        match (claim.epoch, found) {
            (None, None) => {}
            (None, Some(_)) => exists.push(claim.run.clone()),

            (Some(epoch), Some(found)) if found.holder == Some(node) && found.epoch == epoch => {
                if found.last_seq != claim.base {
                    return Verdict::StoreLostEvents(claim.run.clone());
                }
            }
            (Some(_), _) => lost.push(claim.run.clone()),
        }
    }

    Verdict::Refused { lost, exists }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(7);

    fn held(epoch: i64, base: u64) -> Claim<&'static str> {
        Claim { run: "r", epoch: Some(Epoch(epoch)), base }
    }

    fn found(epoch: i64, holder: Option<i64>, last_seq: u64) -> Found {
        Found { epoch: Epoch(epoch), holder: holder.map(NodeId), last_seq }
    }

    #[test]
    fn a_refusal_is_explained_by_what_is_stored() {
        let accepted = Claim { run: "r", epoch: None, base: 0 };
        let refused = |lost: &[&'static str], exists: &[&'static str]| Verdict::Refused {
            lost: lost.to_vec(),
            exists: exists.to_vec(),
        };
        let cases = [
            (
                "the node is unknown",
                None,
                held(2, 5),
                Some(found(2, Some(7), 5)),
                Verdict::Forgotten,
            ),
            (
                "the first attempt was applied",
                Some(3),
                held(2, 5),
                Some(found(2, Some(7), 6)),
                Verdict::Committed,
            ),
            (
                "it was applied, and the run has moved on",
                Some(3),
                held(2, 5),
                Some(found(4, Some(9), 8)),
                Verdict::Committed,
            ),
            (
                "another node holds it",
                Some(2),
                held(2, 5),
                Some(found(3, Some(9), 5)),
                refused(&["r"], &[]),
            ),
            ("nobody holds it", Some(2), held(2, 5), Some(found(2, None, 5)), refused(&["r"], &[])),
            (
                "the node holds it again",
                Some(2),
                held(2, 5),
                Some(found(3, Some(7), 5)),
                refused(&["r"], &[]),
            ),
            ("retention removed it", Some(2), held(2, 5), None, refused(&["r"], &[])),
            (
                "it was accepted before",
                Some(2),
                accepted.clone(),
                Some(found(1, Some(9), 0)),
                refused(&[], &["r"]),
            ),
            ("it stands in the way of nothing", Some(2), accepted, None, refused(&[], &[])),
            (
                "events are gone",
                Some(2),
                held(2, 5),
                Some(found(2, Some(7), 4)),
                Verdict::StoreLostEvents("r"),
            ),
        ];
        for (what, stored, claim, found, expected) in cases {
            assert_eq!(judge(ME, 3, stored, &[claim], &[found]), expected, "{what}");
        }
    }
}
