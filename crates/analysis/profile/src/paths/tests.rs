//! Tests of the comparison of paths.
