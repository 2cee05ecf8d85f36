//! Distributions for servers, which run them from memory: made of packages and identified by hash
//! (`image`), and offered to a server's iPXE by HTTP (`answers`). `garbage` deletes those that are
//! no longer used.
//!
//! `machine` has a server start one, and finds out that it did.

mod answers;
mod error;
mod garbage;
mod image;

pub use answers::{Answers, Offer};
pub use error::DeployError;
pub use garbage::ImageGarbage;
pub use image::{Image, make};
