//! Garbage collection of images: those that no server runs and that are not the newest of a recipe
//! in marvin.toml, and what killed processes left.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::ImageSettings;

use super::DeployError;
use super::image::{ID, MAKING, distributions, newest};

/// Tries for the lock, a second in all: a program that another thread starts has the lock's
/// file until it runs (flock(2): children have the same open file).
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Images that are garbage.
#[derive(Debug)]
pub struct ImageGarbage {
    folder: PathBuf,
    sizes: BTreeMap<String, u64>,
    /// While it is held, no image is made.
    _lock: Option<File>,
}

impl ImageGarbage {
    /// Finds the garbage of a data directory. `recipes` are those of marvin.toml, `in_use` the ids
    /// of images that servers run. No image can be made while the result lives.
    ///
    /// # Errors
    /// If an image is being made, or a directory cannot be read.
    pub fn find(
        home: &Path,
        recipes: &[ImageSettings],
        in_use: &[String],
    ) -> Result<Self, DeployError> {
        let folder = distributions(home);
        let lock = match File::open(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    folder,
                    sizes: BTreeMap::new(),
                    _lock: None,
                });
            }
            opened => opened.map_err(DeployError::io("read", &folder))?,
        };
        for left in (0..LOCK_TRIES).rev() {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if left > 0 => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::WouldBlock) => return Err(DeployError::Busy { path: folder }),
                Err(TryLockError::Error(error)) => {
                    return Err(DeployError::io("lock", &folder)(error));
                }
            }
        }
        let newest: Vec<String> = recipes
            .iter()
            .filter_map(|one| Some(newest(&folder.join(&one.name))?.1))
            .collect();
        let is_kept = |name: &str| {
            // A recipe's directory is beside the images, and its name may look like an id.
            let is_recipe = recipes.iter().any(|recipe| recipe.name == name);
            is_recipe || [&newest, in_use].into_iter().flatten().any(|id| id == name)
        };
        let mut sizes = BTreeMap::new();
        for entry in fs::read_dir(&folder).map_err(DeployError::io("read", &folder))? {
            let entry = entry.map_err(DeployError::io("read", &folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_image(&name) && !is_kept(&name) {
                sizes.insert(name, bytes_of(&entry.path()));
            }
        }
        Ok(Self {
            folder,
            sizes,
            _lock: Some(lock),
        })
    }

    /// Returns their directories with their sizes (bytes).
    #[must_use]
    pub fn sizes(&self) -> &BTreeMap<String, u64> {
        &self.sizes
    }

    /// Deletes them.
    ///
    /// # Errors
    /// If one cannot be deleted.
    pub fn remove(&self) -> Result<(), DeployError> {
        self.sizes
            .keys()
            .map(|name| self.folder.join(name))
            .try_for_each(|path| {
                fs::remove_dir_all(&path).map_err(DeployError::io("remove", &path))
            })
    }
}

/// Returns whether a directory of this name has an image, or what a killed process made of one.
fn is_image(name: &str) -> bool {
    let is_id = name.len() == ID && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id || name.starts_with(MAKING)
}

/// Returns the size of a directory's files; of files that cannot be read, 0.
fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_of(&entry.path()),
        data => data.map_or(0, |data| data.len()),
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use model::{ImageSettings, Recipe};

    use super::ImageGarbage;
    use crate::{Image, make};

    /// A recipe whose image has this root.
    fn recipe(name: &str, root: &str) -> ImageSettings {
        let script =
            "cd \"$2\"; echo kernel > vmlinuz; printf '%s' \"$1\" > root; echo 6.1 > release";
        let command = ["sh", "-c", script, "make", root]
            .map(str::to_owned)
            .to_vec();
        ImageSettings {
            name: name.into(),
            recipe: Recipe::Command(command),
            kernels: None,
        }
    }

    fn made(home: &Path, name: &str, root: &str) -> Image {
        make(&recipe(name, root), home, false).unwrap()
    }

    fn found(home: &Path, recipes: &[ImageSettings], in_use: &[&Image]) -> ImageGarbage {
        let in_use: Vec<String> = in_use.iter().map(|image| image.id.clone()).collect();
        ImageGarbage::find(home, recipes, &in_use).unwrap()
    }

    #[test]
    fn newest_and_running_images_are_kept() {
        let home = tempfile::tempdir().unwrap();
        assert!(
            found(home.path(), &[], &[]).sizes().is_empty(),
            "no image was ever made"
        );
        let [old, newest, removed, runs] = [
            ("debian", "1"),
            ("debian", "22"),
            ("removed", "333"),
            ("other", "4444"),
        ]
        .map(|(name, root)| made(home.path(), name, root));
        let garbage = found(home.path(), &[recipe("debian", "22")], &[&runs]);
        let files = "kernel\n6.1\n".len() as u64;
        let mut expected = [(old.id, files + 1), (removed.id.clone(), files + 3)];
        expected.sort();
        assert_eq!(
            garbage.sizes().clone().into_iter().collect::<Vec<_>>(),
            expected
        );
        garbage.remove().unwrap();
        drop(garbage);
        assert!(newest.root().exists() && runs.root().exists());
        assert!(
            home.path().join("distributions/removed/log").exists(),
            "it is small, and says what was made"
        );
        assert_eq!(
            made(home.path(), "removed", "333").id,
            removed.id,
            "it is made again"
        );
    }

    #[test]
    fn unfinished_image_is_garbage_once_its_maker_ended() {
        let home = tempfile::tempdir().unwrap();
        let unfinished = home.path().join("distributions/making-x");
        fs::create_dir_all(unfinished.join("deep")).unwrap();
        fs::write(unfinished.join("deep/file"), "12345").unwrap();
        let garbage = found(home.path(), &[recipe("making-y", "")], &[]);
        assert_eq!(
            garbage.sizes().clone().into_iter().collect::<Vec<_>>(),
            [("making-x".to_owned(), 5)]
        );
        drop(garbage);
        // Its directory is locked meanwhile.
        let script = "flock -n \"$2/..\" true && exit 3; cd \"$2\"; touch vmlinuz root release";
        let command = ["sh", "-c", script, "make", ""].map(str::to_owned).to_vec();
        make(
            &ImageSettings {
                recipe: Recipe::Command(command),
                ..recipe("slow", "")
            },
            home.path(),
            false,
        )
        .unwrap();
        let maker = File::open(home.path().join("distributions")).unwrap();
        maker.lock_shared().unwrap();
        let error = ImageGarbage::find(home.path(), &[], &[])
            .unwrap_err()
            .to_string();
        insta::assert_snapshot!(error.replace(&home.path().display().to_string(), "HOME"), @r"
        cannot look for unused images in HOME/distributions: one is being made
        hint: try again when marvin deploy has made it
        ");
    }
}
