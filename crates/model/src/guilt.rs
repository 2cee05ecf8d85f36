//! Whose fault an error is. A kernel's failure is no error but a result: `SubjectFailure`.

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guilt {
    /// The input is wrong: mend it.
    User,
    /// The lab failed; the same command may work later.
    Infra,
}
