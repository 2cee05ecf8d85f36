//! How answers leave: bodies that are whole or come in pieces, and sockets that cut off readers who
//! take nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::site::Reply;

/// An answer in memory, and its share of the memory for answers.
pub(crate) struct Sent {
    pub(crate) reply: Arc<Reply>,
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.reply.body
    }
}

/// The body of an answer.
pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    /// In pieces, with so many bytes left.
    Pieces {
        pieces: mpsc::Receiver<Bytes>,
        left: u64,
    },
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces { left: 0, .. } => Poll::Ready(None),
            Self::Pieces { pieces, left } => {
                Poll::Ready(Some(match ready!(pieces.poll_recv(context)) {
                    Some(piece) => {
                        *left = left.saturating_sub(piece.len() as u64);
                        Ok(Frame::data(piece))
                    }
                    // The connection breaks off, so that the client knows that the answer is not
                    // whole.
                    None => Err(io::Error::other("the artifact is damaged")),
                }))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None) | Self::Pieces { left: 0, .. })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Pieces { left, .. } => *left,
        })
    }
}

/// A socket whose writes have a deadline.
pub(crate) struct Punctual {
    stream: TcpStream,
    time: Duration,
    /// The end of the pending write.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Punctual {
    pub(crate) fn new(stream: TcpStream, time: Duration) -> Self {
        Self {
            stream,
            time,
            deadline: None,
        }
    }

    /// Returns the result of a write, or an error if it has been pending for too long.
    fn within<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let end = Instant::now() + self.time;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep_until(end)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Punctual {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Punctual {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
