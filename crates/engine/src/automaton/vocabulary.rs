//! The texts of a model's tokens, by id and as a trie.

/// The root above all nodes of the trie, for [`Vocabulary::children`].
pub(super) const ROOT: Option<usize> = None;

/// A node of the trie. Nodes are in depth-first order: a node's children follow it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrieNode {
    pub(super) byte: u8,
    /// Bytes from the root to this node, at least 1.
    pub(super) depth: u32,
    /// The node after its last descendant.
    pub(super) end: u32,
    /// Index of its first token in the list of all tokens; they end where those of the next node
    /// start.
    tokens: u32,
}

/// The texts of a model's tokens, and which of them end a text. Made once per model.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Box<[u8]>,
    /// The text of token `id` is `offsets[id]..offsets[id + 1]`; empty for an end token.
    offsets: Box<[u32]>,
    /// The tokens that end a text, in ascending order.
    ends: Box<[u32]>,
    /// The tokens with a newline in their text.
    breaks: Box<[u32]>,
    nodes: Box<[TrieNode]>,
    /// The tokens in the order of their nodes.
    tokens: Box<[u32]>,
    depth: u32,
}

impl Vocabulary {
    /// `pieces[id]` is the text of token `id`, empty for control tokens, which no grammar permits.
    /// `ends` are the tokens that end a text; their own texts are ignored.
    pub fn new(mut pieces: Vec<Vec<u8>>, mut ends: Vec<u32>) -> Self {
        ends.retain(|id| (*id as usize) < pieces.len());
        ends.sort_unstable();
        ends.dedup();
        for id in &ends {
            pieces[*id as usize].clear();
        }

        let small = |length: usize| {
            u32::try_from(length).expect("invariant: a vocabulary is far below 4 GiB")
        };

        let mut offsets = Vec::with_capacity(pieces.len() + 1);
        offsets.push(0);
        let mut length = 0;
        for piece in &pieces {
            length += piece.len();
            offsets.push(small(length));
        }

        let breaks = (0..)
            .zip(&pieces)
            .filter(|(_, piece)| piece.contains(&b'\n'))
            .map(|(id, _)| id)
            .collect();

        // Sorted by text, which is the order of the trie's nodes.
        let mut order: Vec<u32> =
            (0..small(pieces.len())).filter(|id| !pieces[*id as usize].is_empty()).collect();
        order.sort_by(|a, b| pieces[*a as usize].cmp(&pieces[*b as usize]));

        let mut nodes: Vec<TrieNode> = Vec::new();
        // The nodes on the path to the previous piece.
        let mut path: Vec<usize> = Vec::new();
        for (place, id) in order.iter().enumerate() {
            let piece = &pieces[*id as usize];
            let shared = path
                .iter()
                .zip(piece)
                .take_while(|(node, byte)| nodes[**node].byte == **byte)
                .count();
            // Nodes below the shared part have all their descendants now.
            for node in path.drain(shared..) {
                nodes[node].end = small(nodes.len());
            }
            for byte in &piece[shared..] {
                path.push(nodes.len());
                // An inner node has no token: its list is empty.
                nodes.push(TrieNode {
                    byte: *byte,
                    depth: small(path.len()),
                    end: 0,
                    tokens: small(place),
                });
            }
        }

        for node in path {
            nodes[node].end = small(nodes.len());
        }

        Self {
            bytes: pieces.concat().into_boxed_slice(),
            offsets: offsets.into_boxed_slice(),
            ends: ends.into_boxed_slice(),
            breaks,
            depth: nodes.iter().map(|node| node.depth).max().unwrap_or(0),
            nodes: nodes.into_boxed_slice(),
            tokens: order.into_boxed_slice(),
        }
    }

    /// Number of tokens.
    #[allow(clippy::len_without_is_empty, reason = "a vocabulary is not asked whether it is empty")]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The text of a token; empty for a control or end token, and for an id out of range.
    pub fn piece(&self, token: u32) -> &[u8] {
        match self.offsets.get(token as usize..).unwrap_or_default() {
            [from, to, ..] => &self.bytes[*from as usize..*to as usize],
            _ => &[],
        }
    }

    /// The tokens that end a text, in ascending order.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The tokens whose text has a newline, in ascending order.
    pub(super) fn breaks(&self) -> &[u32] {
        &self.breaks
    }

    /// The nodes one byte below `node`, or those of the first bytes below [`ROOT`].
    pub(super) fn children(&self, node: Option<usize>) -> impl Iterator<Item = usize> {
        let (first, end) =
            node.map_or((0, self.nodes.len()), |node| (node + 1, self.nodes[node].end as usize));
        let next = |child: &usize| self.nodes.get(*child).map(|node| node.end as usize);
        std::iter::successors(Some(first), next).take_while(move |child| *child < end)
    }

    pub(super) fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    /// The tokens whose text ends at a node.
    pub(super) fn tokens_at(&self, node: usize) -> &[u32] {
        let from = self.nodes[node].tokens as usize;
        let to = self.nodes.get(node + 1).map_or(self.tokens.len(), |next| next.tokens as usize);
        &self.tokens[from..to]
    }

    /// Length of the longest token in bytes.
    pub(super) fn depth(&self) -> usize {
        self.depth as usize
    }
}
