//! The experiment as one HTML page: plots and tables of each case. No network, no script.

use askama::Template;

use super::plot::{HEIGHT, Picture, WIDTH, pictures};
use super::tables::{CaseTables, LEGEND, cases};
use crate::plain::plain;
use crate::render::RenderError;
use crate::render::number::seed_list;
use crate::rmap::Rmap;

#[derive(Template)]
#[template(path = "rmap.html")]
struct PageOfRmap {
    title: String,
    kernels: Vec<String>,
    machine: String,
    seeds: String,
    cases: Vec<(CaseTables, Vec<Picture>)>,
    legend: &'static str,
    command: String,
    width: f64,
    height: f64,
}

/// Renders the experiment as a self-contained HTML page.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn html(rmap: &Rmap) -> Result<String, RenderError> {
    let kernels: Vec<String> = rmap.kernels.iter().map(|kernel| plain(kernel)).collect();
    let page = PageOfRmap {
        title: format!("Reverse mappings: {}", kernels.join(" against ")),
        kernels,
        machine: plain(&rmap.machine),
        seeds: seed_list(&[rmap.seed]),
        cases: cases(rmap).into_iter().zip(&rmap.cases).map(|(tables, case)| (tables, pictures(rmap, *case))).collect(),
        legend: LEGEND,
        command: plain(&rmap.command),
        width: WIDTH,
        height: HEIGHT,
    };
    Ok(page.render()?)
}
