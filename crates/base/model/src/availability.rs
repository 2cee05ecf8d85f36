//! A value or the reason why there is none, for lookups and measurements of which it is a result
//! that they yield nothing: the machine cannot do it, or the kernel failed. A failure of the lab
//! itself is an `Err` around it.

/// A value, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Availability<T, R = String> {
    /// The value.
    Available(T),
    /// The reason why there is none.
    Unavailable(R),
}

impl<T, R> Availability<T, R> {
    /// Returns the value, for callers that the reason does not concern.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Available(value) => Some(value),
            Self::Unavailable(_) => None,
        }
    }

    /// Converts the value; keeps the reason.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Availability<U, R> {
        match self {
            Self::Available(value) => Availability::Available(convert(value)),
            Self::Unavailable(reason) => Availability::Unavailable(reason),
        }
    }

    /// Converts the value, which may make it unavailable.
    pub fn and_then<U>(self, convert: impl FnOnce(T) -> Result<U, R>) -> Availability<U, R> {
        self.into_result().and_then(convert).into()
    }

    /// Returns the reason as an error, for callers without a result if there is no value.
    ///
    /// # Errors
    /// If there is no value.
    pub fn into_result(self) -> Result<T, R> {
        match self {
            Self::Available(value) => Ok(value),
            Self::Unavailable(reason) => Err(reason),
        }
    }
}

impl<T, R> From<Result<T, R>> for Availability<T, R> {
    fn from(result: Result<T, R>) -> Self {
        match result {
            Ok(value) => Self::Available(value),
            Err(reason) => Self::Unavailable(reason),
        }
    }
}
