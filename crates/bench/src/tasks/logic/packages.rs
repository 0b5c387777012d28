//! Sets of packages, by number.

/// A set is a machine word of this many bits.
pub const PACKAGES_MAX: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Packages(u128);

impl Packages {
    pub const NONE: Self = Self(0);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, package: usize) -> bool {
        self.0 & (1 << package) != 0
    }

    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn count(self) -> u64 {
        u64::from(self.0.count_ones())
    }

    pub fn lowest(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }
}

impl<'a> Extend<&'a usize> for Packages {
    fn extend<I: IntoIterator<Item = &'a usize>>(&mut self, packages: I) {
        packages.into_iter().for_each(|package| self.0 |= 1 << package);
    }
}

impl<'a> FromIterator<&'a usize> for Packages {
    fn from_iter<I: IntoIterator<Item = &'a usize>>(packages: I) -> Self {
        let mut set = Self::NONE;
        set.extend(packages);
        set
    }
}
