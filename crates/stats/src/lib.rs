//! Numbers in, intervals and medians out; knows no word of the domain.
