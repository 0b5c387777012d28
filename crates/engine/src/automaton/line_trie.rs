//! Excluded lines as a trie over bytes.

/// How far the current line follows the trie; `None` once it has left it.
pub(super) type Place = Option<u32>;

const ROOT: u32 = 0;

#[derive(Debug, Default)]
struct Node {
    is_line: bool,
    /// True if all lines that begin this way are excluded.
    is_prefix: bool,
    /// Sorted by byte.
    children: Vec<(u8, u32)>,
}

#[derive(Debug, Default)]
pub(super) struct LineTrie {
    /// Empty if there are no lines.
    nodes: Vec<Node>,
}

impl LineTrie {
    /// A trie of `lines`, and of all lines that begin with one of `prefixes`. What contains a
    /// newline can never be a line, so it is left out.
    pub(super) fn new<'l>(
        lines: impl IntoIterator<Item = &'l str>,
        prefixes: impl IntoIterator<Item = &'l str>,
    ) -> Self {
        let mut trie = Self::default();
        for line in lines.into_iter().filter(|line| !line.contains('\n')) {
            let end = trie.insert(line.as_bytes());
            trie.nodes[end].is_line = true;
        }
        for prefix in prefixes.into_iter().filter(|prefix| !prefix.contains('\n')) {
            let end = trie.insert(prefix.as_bytes());
            trie.nodes[end].is_prefix = true;
        }
        trie
    }

    /// The node at the end of a text.
    fn insert(&mut self, line: &[u8]) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = ROOT;
        for byte in line {
            let children = &self.nodes[at as usize].children;
            at = match children.binary_search_by_key(byte, |(byte, _)| *byte) {
                Ok(place) => children[place].1,
                Err(place) => {
                    let new = u32::try_from(self.nodes.len())
                        .expect("invariant: a request bounds the lines' bytes");
                    self.nodes[at as usize].children.insert(place, (*byte, new));
                    self.nodes.push(Node::default());
                    new
                }
            };
        }
        at as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The place at the start of a line.
    pub(super) fn root(&self) -> Place {
        (!self.is_empty()).then_some(ROOT)
    }

    /// The place after one more byte. A newline starts the next line.
    pub(super) fn after(&self, place: Place, byte: u8) -> Place {
        if byte == b'\n' { self.root() } else { place.and_then(|node| self.child(node, byte)) }
    }

    pub(super) fn child(&self, node: u32, byte: u8) -> Place {
        let Node { is_prefix, children, .. } = &self.nodes[node as usize];
        // All continuations of a prefix stay at its node.
        if *is_prefix && byte != b'\n' {
            return Some(node);
        }
        children.binary_search_by_key(&byte, |(byte, _)| *byte).ok().map(|place| children[place].1)
    }

    /// Returns whether the current line is one of the lines, or begins with one of the prefixes.
    pub(super) fn is_line(&self, place: Place) -> bool {
        place.is_some_and(|node| {
            self.nodes[node as usize].is_line || self.nodes[node as usize].is_prefix
        })
    }
}
