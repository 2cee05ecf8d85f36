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
    kernels: Vec<String>,
    pictures: Vec<Picture>,
    grids: Vec<Grid>,
    width: f64,
    height: f64,
}

/// Renders what monitors saw as a self-contained HTML page, its tables in a style.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn html(monitored: &Monitored, style: Style) -> Result<String, RenderError> {
    let kernels: Vec<String> = monitored.heads.iter().map(|head| plain(&title(head))).collect();
    let page = PageOfMonitors {
        title: format!("What monitors saw: {}", kernels.join(", ")),
        kernels,
        pictures: pictures(monitored),
        grids: grids(monitored, style),
        width: WIDTH,
        height: HEIGHT,
    };
    Ok(page.render()?)
}
