//! Indexes of kernels and machines in a [`History`](super::History): two types, so that no call
//! takes one for the other. They are valid for the history that returned them, and stay so as it
//! grows.

/// A kernel's number in the order in which builds were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelIx(pub(super) usize);

/// Two kernels that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelPair {
    /// The kernel that the other is compared with.
    pub base: KernelIx,
    /// The kernel in question.
    pub target: KernelIx,
}

/// A machine's number in the order in which machines were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineIx(pub(super) usize);
