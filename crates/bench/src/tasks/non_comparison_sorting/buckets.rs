//! Buckets of small numbers in a single allocation: a state with hundreds of buckets is copied at
//! every step.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Lists that only grow, stored one after the other.
#[derive(Clone)]
pub struct Buckets {
    items: Vec<u32>,
    /// The end of each bucket among the items.
    ends: Vec<u32>,
}

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut buckets = Self::empty(0);
        for bucket in Vec::<Vec<u32>>::deserialize(deserializer)? {
            buckets.items.extend(bucket);
            let end = u32::try_from(buckets.items.len())
                .map_err(|_| serde::de::Error::custom("has too many items"))?;
            buckets.ends.push(end);
        }
        Ok(buckets)
    }
}

impl Buckets {
    /// This many empty buckets.
    pub fn empty(count: usize) -> Self {
        Self { items: Vec::new(), ends: vec![0; count] }
    }

    /// Number of buckets.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Appends an item to a bucket.
    pub fn push(&mut self, bucket: usize, item: usize) {
        let item = u32::try_from(item).expect("invariant: places and values of an input are small");
        self.items.insert(self.ends[bucket] as usize, item);
        // All later buckets move up by one place.
        self.ends[bucket..].iter_mut().for_each(|end| *end += 1);
    }

    fn start(&self, bucket: usize) -> usize {
        bucket.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    /// Number of items of a bucket.
    pub fn size(&self, bucket: usize) -> usize {
        self.ends[bucket] as usize - self.start(bucket)
    }

    /// Numbers of items of all buckets, in order.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        (0..self.count()).map(|bucket| self.size(bucket))
    }

    /// The items of a bucket, in order.
    pub fn get(&self, bucket: usize) -> &[u32] {
        &self.items[self.start(bucket)..self.ends[bucket] as usize]
    }

    /// Exchanges two cells of a bucket.
    pub fn swap(&mut self, bucket: usize, i: usize, j: usize) {
        let start = self.start(bucket);
        self.items.swap(start + i, start + j);
    }

    /// All buckets, from the first to the last.
    pub fn joined(&self) -> &[u32] {
        &self.items
    }
}

impl Serialize for Buckets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.count()).map(|bucket| self.get(bucket)))
    }
}

#[cfg(test)]
mod tests {
    use super::Buckets;

    #[test]
    fn buckets_keep_the_order_of_arrival() {
        let mut buckets = Buckets::empty(3);
        for (bucket, item) in [(2, 5), (0, 7), (2, 1), (0, 0)] {
            buckets.push(bucket, item);
        }

        buckets.swap(2, 0, 1);

        assert_eq!(serde_json::to_string(&buckets).ok().as_deref(), Some("[[7,0],[],[1,5]]"));
        assert_eq!(buckets.joined(), [7, 0, 1, 5]);
        assert_eq!(buckets.sizes().collect::<Vec<_>>(), [2, 0, 2]);
    }
}
