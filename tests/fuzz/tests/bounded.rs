//! A bounded run of every target: its seeds and damaged ones. No panic, and no input that takes
//! long.

use std::error::Error;
use std::time::{Duration, Instant};

/// Processor time of a target on a busy host, many times what it takes.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_reader_takes_any_bytes() -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?;
    let scratch = folder.path().join("scratch");
    for target in fuzz::targets(folder.path())? {
        let begun = Instant::now();
        for number in 0..150 {
            let input = target.input(number);
            assert!(!input.is_empty() || number > 0, "{}: no seed", target.name);
            target.run(&input, &scratch);
        }
        assert!(
            begun.elapsed() < LIMIT,
            "{}: {:?}",
            target.name,
            begun.elapsed()
        );
    }
    Ok(())
}

#[test]
fn an_input_follows_from_its_number() -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?;
    let targets = fuzz::targets(folder.path())?;
    let target = &targets[0];
    assert_eq!(target.input(1000), target.input(1000));
    assert_ne!(target.input(1000), target.input(1002));
    Ok(())
}
