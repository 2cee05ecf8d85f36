//! Distributions for servers, which run them from memory: made of packages and identified by hash
//! (`image`), and offered to a server's iPXE by HTTP (`answers`). `garbage` deletes those that are
//! no longer used.
//!
//! `own_system` gives a server one as its own system, or its former one back; `loader` starts it
//! there, with the server's `seal`.

mod answers;
mod error;
mod garbage;
mod image;
mod loader;
mod own_system;
pub(crate) mod seal;

pub use answers::{Answers, Offer};
pub use error::DeployError;
pub use garbage::ImageGarbage;
pub use image::{Image, make};
pub use loader::images_in_use;
#[cfg(test)]
pub(crate) use loader::write_deployed_image;
pub(crate) use loader::{ImageLoader, RUN_IMAGE, deployed_image};
pub(crate) use own_system::image_loader;
pub use own_system::{deploy, install, undeploy};
