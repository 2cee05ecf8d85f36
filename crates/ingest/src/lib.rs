//! Raw bytes of a guest to samples and environments: total functions.
