//! The dashboard and reports in a real browser; without Chromium these tests check nothing.

mod browser;
mod controls;
mod pages;
