//! `kuberay-webhook check`: what an API server with the webhook would say about manifests, without a cluster.
//!
//! The walk of one object is the API server's: read → unknown fields, nulls, defaults → mutation → schema, CEL and metadata →
//! the rules of the webhook. Everything found is reported at once, with the line it concerns and, where it can be guessed, what
//! was meant. [`judge`](pipeline::judge) and what it calls are pure; this file reads and prints.

mod args;
mod cel;
mod files;
mod finding;
mod meant;
mod objects;
mod old;
mod pipeline;
mod report;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

pub use args::{CheckArgs, OutputFormat};
pub use finding::{Checked, CheckedFile, Finding};
pub use pipeline::{Context, check_text};
pub use report::{Counts, Reporter};

/// Everything admitted.
const ADMITTED: u8 = 0;
/// At least one object would be refused.
const DENIED: u8 = 1;
/// At least one file could not be read or parsed, so that not everything was judged.
const UNREADABLE: u8 = 2;

/// Runs the command: prints to standard output (problems, or the JSON) and standard error (what could not be done, a summary).
pub fn run(args: &CheckArgs) -> ExitCode {
    let context = match args.context() {
        Ok(context) => context,
        Err(problem) => {
            eprintln!("kuberay-webhook: {problem}");
            return ExitCode::from(UNREADABLE);
        }
    };
    if context.lacks_namespace_labels() {
        eprintln!("kuberay-webhook: labels of namespaces are not known here, so what the configuration says about them is left out");
    }
    match print(args, &context) {
        Ok(counts) => ExitCode::from(counts.exit_code()),
        // Whoever read the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(DENIED),
        Err(error) => {
            eprintln!("kuberay-webhook: the result cannot be written: {error}");
            ExitCode::from(UNREADABLE)
        }
    }
}

fn print(args: &CheckArgs, context: &Context) -> io::Result<Counts> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut reporter = Reporter::new(args.output, &mut out);
    let files = files::find(&args.files);
    for input in &files.inputs {
        match input.read() {
            Ok(text) => reporter.file(&check_text(context, &input.name, &text))?,
            Err(problem) => reporter.unreadable(&input.name, &problem)?,
        }
    }
    for (name, problem) in &files.problems {
        reporter.unreadable(name, problem)?;
    }
    let counts = reporter.finish()?;
    out.flush()?;
    if args.output == OutputFormat::Text {
        eprintln!("{}", counts.summary());
        if files.templates > 0 {
            eprintln!(
                "{} files in the templates folder of a Helm chart were left out: render them with `helm template CHART | kuberay-webhook check -`",
                files.templates
            );
        }
    }
    Ok(counts)
}
