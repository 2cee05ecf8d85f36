//! The life of a server in use. The promise that a server runs its own kernel again after every end
//! of a measurement rests on it: each step that may leave the own kernel goes through
//! [`Life::begin_test`], and a handle that is closed in [`Life::UnderTest`] goes back first.

/// The release of a server's own kernel; empty until the server has said it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct OwnKernel(String);

impl OwnKernel {
    /// Returns the release, if it is known.
    pub(crate) fn release(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|release| !release.is_empty())
    }
}

/// What this lab owes to a server. Each transition consumes the state before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// This lab does not hold the server: not yet, not any more, or it is lost, and nothing more
    /// can be done for it.
    Released(OwnKernel),
    /// The server is held and runs its own system; others have to be let in at the end.
    Held(OwnKernel),
    /// The server is held and may run a kernel under test, or has left its image: it has to be
    /// brought back before others are let in.
    UnderTest(OwnKernel),
}

impl Default for Life {
    fn default() -> Self {
        Self::Released(OwnKernel::default())
    }
}

impl Life {
    pub(crate) const fn own_kernel(&self) -> &OwnKernel {
        match self {
            Self::Released(own) | Self::Held(own) | Self::UnderTest(own) => own,
        }
    }

    fn into_own_kernel(self) -> OwnKernel {
        match self {
            Self::Released(own) | Self::Held(own) | Self::UnderTest(own) => own,
        }
    }

    /// The lab holds the server, whatever it runs.
    pub(crate) fn hold(self) -> Self {
        match self {
            Self::Released(own) => Self::Held(own),
            held => held,
        }
    }

    /// The server has said which kernel is its own.
    pub(crate) fn learn_own_kernel(self, release: &str) -> Self {
        let own = OwnKernel(release.to_owned());
        match self {
            Self::Released(_) => Self::Released(own),
            Self::Held(_) => Self::Held(own),
            Self::UnderTest(_) => Self::UnderTest(own),
        }
    }

    /// A kernel under test is about to boot, or was found running. A server that was lost is held
    /// again by that.
    pub(crate) fn begin_test(self) -> Self {
        Self::UnderTest(self.into_own_kernel())
    }

    /// The server was seen in its own system.
    pub(crate) fn end_test(self) -> Self {
        match self {
            Self::UnderTest(own) => Self::Held(own),
            other => other,
        }
    }

    /// Others may use the server.
    pub(crate) fn release(self) -> Self {
        Self::Released(self.into_own_kernel())
    }
}

#[cfg(test)]
mod tests {
    use super::Life;

    #[test]
    fn server_is_released_only_by_release() {
        let held = Life::default().hold().learn_own_kernel("6.1-own");
        assert!(matches!(held, Life::Held(_)));
        let tested = held.begin_test().hold();
        assert!(matches!(tested, Life::UnderTest(_)), "it is still due back");
        let back = tested.end_test();
        assert!(matches!(back, Life::Held(_)));
        let released = back.release();
        assert_eq!(released.own_kernel().release(), Some("6.1-own"));
        assert!(matches!(released.end_test(), Life::Released(_)));
    }

    #[test]
    fn lost_server_that_boots_again_is_due_back() {
        let lost = Life::default().hold().begin_test().release();
        assert!(matches!(lost.begin_test(), Life::UnderTest(_)));
    }
}
