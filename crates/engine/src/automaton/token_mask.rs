//! Sets of tokens that may come next.

/// Sets of at most this size are also kept as lists.
const FEW: usize = 64;

/// The tokens that may come next.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TokenMask {
    /// Bit `id % 64` of word `id / 64`.
    words: Box<[u64]>,
    count: usize,
    few: Option<Box<[u32]>>,
}

impl TokenMask {
    pub(super) fn new(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        let few = (count <= FEW).then(|| ids(&words).collect());
        Self { words: words.into_boxed_slice(), count, few }
    }

    /// No token of a vocabulary of `len`.
    pub(super) fn none(len: usize) -> Self {
        Self::new(vec![0; len.div_ceil(64)])
    }

    /// These tokens less `barred`, each of which is below the vocabulary's length.
    pub(super) fn without(&self, barred: &[u32]) -> Self {
        let mut words = self.words.to_vec();
        for token in barred {
            words[*token as usize / 64] &= !(1 << (token % 64));
        }
        Self::new(words)
    }

    /// Returns whether `token` may come next.
    pub fn contains(&self, token: u32) -> bool {
        self.words.get(token as usize / 64).is_some_and(|word| word >> (token % 64) & 1 == 1)
    }

    /// The tokens in ascending order, if there are at most 64.
    pub fn few(&self) -> Option<&[u32]> {
        self.few.as_deref()
    }

    /// The tokens in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        ids(&self.words)
    }

    /// The number of tokens that may come next.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether no token of the vocabulary fits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The token that must come next, if there is only one.
    pub fn only(&self) -> Option<u32> {
        match self.few() {
            Some([token]) => Some(*token),
            _ => None,
        }
    }

    /// Approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + 8 * self.words.len() + 4 * self.few.as_ref().map_or(0, |few| few.len())
    }
}

fn ids(words: &[u64]) -> impl Iterator<Item = u32> {
    (0_u32..).step_by(64).zip(words).flat_map(|(first, word)| {
        // Each step clears the lowest bit.
        let rests = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
        rests.take_while(|rest| *rest != 0).map(move |rest| first + rest.trailing_zeros())
    })
}
