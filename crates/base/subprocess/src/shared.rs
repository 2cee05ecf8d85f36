//! A value that threads share, where one of them may panic while programs run.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that ignores poison.
///
/// A thread that panics is a bug in Marvin, and its panic is passed on to the thread that joins it.
/// Until then the others have to end properly: they store what was measured and return servers to
/// their own kernels. A second panic at each lock would prevent that, and would hide the first one.
#[derive(Debug, Default)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Shares a value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the value and returns it, locked.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value when no thread shares it any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Shared;

    #[test]
    fn value_outlives_a_panic() {
        let shared = Shared::new(1);
        std::thread::scope(|scope| {
            let panicked = scope.spawn(|| {
                *shared.lock() += 1;
                panic!("a bug");
            });
            assert!(panicked.join().is_err());
        });
        assert_eq!(*shared.lock(), 2);
        assert_eq!(shared.into_inner(), 2);
    }
}
