//! Two processes that wake each other.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use super::{Failure, Workload};
use crate::sys::{self, Fork};

struct PipePingPong {
    to: PipeWriter,
    from: PipeReader,
}

impl Workload for PipePingPong {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut byte = [0];
        for _ in 0..operations {
            self.to.write_all(&byte)?;
            self.from.read_exact(&mut byte)?;
        }
        Ok(())
    }
}

/// pipe-pingpong: a byte goes to a child process and comes back.
pub(super) fn pipe_pingpong() -> Result<Box<dyn Workload>, Failure> {
    let (mut child_from, to) = io::pipe()?;
    let (from, mut child_to) = io::pipe()?;
    match sys::fork()? {
        Fork::Child => {
            drop((to, from));
            let mut byte = [0];
            // The parent's end closes when it is done.
            while child_from
                .read_exact(&mut byte)
                .and_then(|()| child_to.write_all(&byte))
                .is_ok()
            {}
            sys::exit_now(0)
        }
        Fork::Parent(_) => Ok(Box::new(PipePingPong { to, from })),
    }
}
