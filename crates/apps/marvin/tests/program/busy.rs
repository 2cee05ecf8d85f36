//! Neighbours that keep processors busy while something is measured.

use std::sync::atomic::{AtomicBool, Ordering};

/// Does something beside threads that never pause; they end with it, also when it panics.
pub(crate) fn while_busy<T>(neighbours: usize, action: impl FnOnce() -> T) -> T {
    let is_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..neighbours {
            scope.spawn(|| {
                while !is_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _ending = Ending(&is_ended);
        action()
    })
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
