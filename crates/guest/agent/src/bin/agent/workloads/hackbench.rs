//! Groups of tasks that send each other messages, after hackbench.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use super::split_work::{Act, SplitWork, Step, TaskKind};
use super::{Made, Workload};

/// Groups, and senders and as many receivers in each.
const GROUPS: usize = 2;
const SENDERS: usize = 5;
const MESSAGE: usize = 100;

/// What messages go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Pipe,
    Socket,
}

type Receiver = Box<dyn Read + Send>;
type Sender = Box<dyn Write + Send>;

impl Channel {
    /// Makes one channel with an end to receive from and several to send into.
    fn open(self) -> io::Result<(Receiver, Vec<Sender>)> {
        Ok(match self {
            Self::Pipe => {
                let (from, to) = io::pipe()?;
                let ends = (0..SENDERS).map(|_| Ok(Box::new(to.try_clone()?) as Sender));
                (Box::new(from), ends.collect::<io::Result<_>>()?)
            }
            Self::Socket => {
                let (from, to) = UnixStream::pair()?;
                let ends = (0..SENDERS).map(|_| Ok(Box::new(to.try_clone()?) as Sender));
                (Box::new(from), ends.collect::<io::Result<_>>()?)
            }
        })
    }
}

struct Hackbench(SplitWork);

impl Workload for Hackbench {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.0.tell(Step::Run, |_| operations)
    }
}

fn receiver(mut from: Receiver) -> Act {
    Box::new(move |_, rounds| {
        let mut message = [0; MESSAGE];
        (0..rounds * SENDERS as u64).try_for_each(|_| from.read_exact(&mut message))
    })
}

fn sender(mut to: Vec<Sender>) -> Act {
    Box::new(move |_, rounds| {
        (0..rounds).try_for_each(|_| to.iter_mut().try_for_each(|to| to.write_all(&[1; MESSAGE])))
    })
}

/// hackbench-…: each sender writes a message to each receiver of its group, round after round.
pub(super) fn hackbench(kind: TaskKind, channel: Channel) -> Made {
    let (mut receivers, mut senders): (Vec<Act>, Vec<Act>) = (Vec::new(), Vec::new());
    for _ in 0..GROUPS {
        let mut of_group: Vec<Vec<Sender>> = (0..SENDERS).map(|_| Vec::new()).collect();
        for _ in 0..SENDERS {
            let (from, ends) = channel.open()?;
            receivers.push(receiver(from));
            of_group
                .iter_mut()
                .zip(ends)
                .for_each(|(of_sender, end)| of_sender.push(end));
        }
        senders.extend(of_group.into_iter().map(sender));
    }
    receivers.append(&mut senders);
    Ok(Box::new(Hackbench(SplitWork::start(kind, receivers)?)))
}
