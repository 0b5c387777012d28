//! The benches: see the files beside this one and `make bench`.
