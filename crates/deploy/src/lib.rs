//! Distributions for servers, which run them from memory: made of packages and identified by hash (`image`), and offered to a
//! server's iPXE by HTTP (`answers`).
//!
//! `machine` has a server start one, and finds out that it did.

mod answers;
mod error;
mod image;

pub use answers::{Answers, Offer};
pub use error::DeployError;
pub use image::{Image, make};
