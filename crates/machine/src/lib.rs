//! Machines that boot a build: the exact machine, its snapshots, its failures.
