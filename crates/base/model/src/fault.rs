//! Who has to act on an error. A failure of the kernel under test is no error but a result:
//! `SubjectFailure`.

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The user: the input is wrong.
    User,
    /// The lab failed; the same command may succeed later.
    Lab,
}
