//! Options for the output of a comparison.

use std::path::PathBuf;

use clap::Args;
use document::{Only, Sort, Style, View};

use super::{MailOptions, margin};
use crate::exit::WrongInput;
use crate::session::Format;

/// Output options of a comparison.
#[derive(Debug, Args)]
pub(crate) struct ComparisonOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) mail: MailOptions,

    /// Add the kernel counters below the table: time, reclaim, disks, slabs, stalls, as marvin
    /// monitors does
    #[arg(long)]
    pub(crate) monitors: bool,

    /// Table layout in text: marvin; mmtests as in MMTests today; 2013 as in MMTests of 2013
    #[arg(long, value_name = "STYLE", default_value = "marvin")]
    pub(crate) style: Style,

    /// Print all details: environments, kernels, machines, and each change broken down
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Row order: suite, or effect (worst first)
    #[arg(long, value_name = "ORDER", default_value = "suite")]
    pub(crate) sort: Sort,

    /// Show only rows with this verdict: worse, better, changed
    #[arg(long, value_name = "VERDICT")]
    pub(crate) only: Option<Only>,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,
}

impl ComparisonOptions {
    /// Errors if the mail is the answer and the answer's form is chosen, too.
    pub(crate) fn check_mail(&self) -> Result<(), WrongInput> {
        let has_form = self.format != Format::Text || self.style != Style::Marvin;
        if self.mail.is_answer() && has_form {
            let text = "--mail without a file is the answer, and has one form: leave --format and --style out, or \
                        name a file for the mail";
            return Err(WrongInput(text.to_owned()));
        }
        Ok(())
    }

    /// Returns which rows to show, and how.
    pub(crate) fn view(&self) -> View {
        View {
            style: self.style,
            verbose: self.verbose,
            sort: self.sort,
            only: self.only,
        }
    }
}
