//! The number of seeds, with one meaning for all commands.

use clap::Args;

use super::whole;

/// Most seeds.
const SEEDS_MAX: u64 = 1000;

/// Options for the number of seeds.
#[derive(Debug, Args)]
pub(crate) struct SeedOptions {
    /// Number of seeds: boots of each kernel that differ in layout and timing, so that differences
    /// that depend on them show [default: 5 for compare and queue add; 2 for bisect, series and
    /// stabilise; 1 for run and profile, 4 for profile with --model]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, SEEDS_MAX))]
    seeds: Option<u64>,

    /// Same as --seeds 1: fast, but hides differences that depend on layout or timing
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
}

impl SeedOptions {
    /// Returns the number that the user gave.
    pub(crate) fn given(&self) -> Option<u64> {
        if self.quick { Some(1) } else { self.seeds }
    }

    /// Returns the number of seeds of a command with this default.
    pub(crate) fn count(&self, default: u64) -> u64 {
        self.given().unwrap_or(default)
    }

    /// Returns the words that choose this number again, for a command with this default.
    pub(crate) fn arguments(&self, default: u64) -> Vec<String> {
        if self.given() == Some(1) {
            return vec!["--quick".to_owned()];
        }
        vec!["--seeds".to_owned(), self.count(default).to_string()]
    }
}
