//! The pool against servers that behave and servers that do not.
