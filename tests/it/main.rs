//! The one integration test binary; a file for each part.

mod settings;
