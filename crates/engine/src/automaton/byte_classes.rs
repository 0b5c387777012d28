//! Equivalence classes of bytes that a grammar never distinguishes, which keep transition tables
//! narrow.

use super::network::Network;

#[derive(Debug)]
pub(super) struct ByteClasses {
    of: [u8; 256],
    /// A byte of each class.
    examples: Vec<u8>,
}

impl ByteClasses {
    pub(super) fn new(network: &Network) -> Self {
        // One place more than there are bytes, for ranges that end at 255.
        let mut begins = [false; 257];
        for edge in network.all_edges() {
            begins[usize::from(edge.low)] = true;
            begins[usize::from(edge.high) + 1] = true;
        }

        let mut of = [0; 256];
        let mut examples = vec![0];
        for byte in 1..=u8::MAX {
            if begins[usize::from(byte)] {
                examples.push(byte);
            }
            of[usize::from(byte)] =
                u8::try_from(examples.len() - 1).expect("invariant: there are at most 256 classes");
        }
        Self { of, examples }
    }

    pub(super) fn len(&self) -> usize {
        self.examples.len()
    }

    pub(super) fn of(&self, byte: u8) -> usize {
        usize::from(self.of[usize::from(byte)])
    }

    pub(super) fn example(&self, class: usize) -> u8 {
        self.examples[class]
    }
}
