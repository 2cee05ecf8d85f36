//! Whether a guest can hold files at their paths. It would leave out some without a word, and the
//! program would miss them.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::OwnProgramError;
use super::files::KERNEL_FOLDERS;

/// Files of a guest that are Marvin's: they come after the program's and take their place.
const MARVINS: [&str; 5] = ["/agent", "/init", "/marvin-init", "/modules", "/printed"];
/// Longest name of a file (`NAME_MAX` of include/uapi/linux/limits.h).
const NAME_MAX: usize = 255;
/// Longest path that the kernel unpacks, with its end (`PATH_MAX` there; `do_header` in
/// init/initramfs.c passes over longer ones).
const PATH_MAX: usize = 4096;

/// Errors if a path is the kernel's or Marvin's, too long, or below a file.
pub(super) fn check(files: &BTreeMap<String, Vec<u8>>) -> Result<(), OwnProgramError> {
    for path in files.keys() {
        if let Some(why) = refuse(path, files) {
            return Err(OwnProgramError::NoPlace {
                path: path.clone(),
                why,
            });
        }
    }
    Ok(())
}

fn refuse(path: &str, files: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    let is_of = |folders: &[&str]| folders.iter().any(|of| Path::new(path).starts_with(of));
    if is_of(&KERNEL_FOLDERS[..3]) {
        return Some("the kernel has its own files there".to_owned());
    }
    if is_of(&MARVINS) {
        return Some("the guest has a file of Marvin's there".to_owned());
    }
    if path.len() >= PATH_MAX || path.split('/').any(|name| name.len() > NAME_MAX) {
        return Some("the name is longer than the kernel's limit".to_owned());
    }
    let above = path.match_indices('/').map(|(end, _)| &path[..end]);
    let file = above.into_iter().find(|above| files.contains_key(*above))?;
    Some(format!("{file} is a file, not a directory"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::check;

    fn answer(paths: &[&str]) -> String {
        let files: BTreeMap<String, Vec<u8>> = paths
            .iter()
            .map(|path| ((*path).to_owned(), Vec::new()))
            .collect();
        check(&files).map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn places_that_a_guest_lacks_are_refused() {
        assert_eq!(answer(&["/a/b", "/a/c", "/agents", "/run/x"]), "fits");
        insta::assert_snapshot!(answer(&["/agent"]), @"no file can be brought to /agent in the guest: the guest has a file of Marvin's there; choose another place with --with PATH=PLACE");
        insta::assert_snapshot!(answer(&["/dev/console"]), @"no file can be brought to /dev/console in the guest: the kernel has its own files there; choose another place with --with PATH=PLACE");
        insta::assert_snapshot!(answer(&["/a", "/a/b"]), @"no file can be brought to /a/b in the guest: /a is a file, not a directory; choose another place with --with PATH=PLACE");
        assert!(answer(&[&format!("/{}", "a".repeat(256))]).contains("longer than the kernel's"));
        assert!(answer(&[&"/a".repeat(2048)]).contains("longer than the kernel's"));
        assert_eq!(answer(&[&format!("/{}", "a".repeat(255))]), "fits");
    }
}
