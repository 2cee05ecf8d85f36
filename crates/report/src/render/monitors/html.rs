//! What monitors saw as one HTML page: plots, then the tables. No network, no script.

use askama::Template;

use super::super::style::Style;
use super::grid::{Grid, grids};
use super::plot::{HEIGHT, Picture, WIDTH, pictures};
use crate::monitors::{Monitored, title};
use crate::plain::plain;
use crate::render::RenderError;

#[derive(Template)]
#[template(path = "monitors.html")]
struct PageOfMonitors {
    title: String,
    watched: WatchedView,
}

/// What monitors saw, as texts for a page.
#[derive(Debug)]
pub(crate) struct WatchedView {
    pub(crate) subject: String,
    pub(crate) kernels: Vec<String>,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) grids: Vec<Grid>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Returns what monitors saw as texts, its tables in a style.
pub(crate) fn view(monitored: &Monitored, style: Style) -> WatchedView {
    WatchedView {
        subject: plain(&monitored.subject),
        kernels: monitored.heads.iter().map(|head| plain(&title(head))).collect(),
        pictures: pictures(monitored),
        grids: grids(monitored, style),
        width: WIDTH,
        height: HEIGHT,
    }
}

/// Renders what monitors saw as a self-contained HTML page, its tables in a style.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn html(monitored: &Monitored, style: Style) -> Result<String, RenderError> {
    let watched = view(monitored, style);
    let kernels = watched.kernels.join(", ");
    let title = match watched.subject.as_str() {
        "" => format!("What monitors saw: {kernels}"),
        subject => format!("{subject}: {kernels}"),
    };
    Ok(PageOfMonitors { title, watched }.render()?)
}
