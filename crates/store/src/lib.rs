//! Kernels, builds, runs and samples in SQLite; raw artefacts beside it.
