//! Plans and carries out runs: builds, machines, results, reuse.
