//! Kernel sources and builds: Debian packages, files, the build cache.
