//! Flags of `kuberay-webhook check`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use shared::defaults::FleetDefaults;
use shared::features::FeatureGates;
use shared::validation::RuleConfig;

use super::pipeline::Context;

/// Flags of `check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Exit status: 0 all admitted, 1 something would be refused, 2 a file could not be read or parsed.")]
pub struct CheckArgs {
    /// Files, directories (searched for *.yaml, *.yml and *.json), or - for standard input.
    #[arg(required = true, value_name = "FILE|DIR|-")]
    pub files: Vec<PathBuf>,

    /// Objects as they are stored now: makes the check of each object with the same kind, namespace and name an UPDATE.
    #[arg(long, value_name = "FILE")]
    pub old: Option<PathBuf>,

    /// Feature gates of the operator that works on the objects: Name=true,Other=false.
    #[arg(long, default_value = "", value_name = "LIST", hide_default_value = true)]
    pub feature_gates: FeatureGates,

    /// Fleet defaults that the webhook would fill in, as in its configuration.
    #[arg(long, value_name = "FILE")]
    pub defaults: Option<PathBuf>,

    /// Rules that only warn, as in the webhook's configuration.
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// How to report: a line a problem, or an array with an element for each object.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// `FILE:LINE: Kind/name: path: message`.
    Text,
    /// A JSON array.
    Json,
}

impl CheckArgs {
    /// Reads the files that the flags name.
    ///
    /// # Errors
    /// A sentence for the user, when such a file cannot be read or understood.
    pub fn context(&self) -> Result<Context, String> {
        let mut context = Context::new(self.feature_gates).with_patches(self.output == OutputFormat::Json);
        if let Some(path) = &self.defaults {
            let fleet = FleetDefaults::parse(&read(path)?).map_err(|error| format!("--defaults {}: {error}", path.display()))?;
            context = context.with_fleet_defaults(fleet);
        }
        if let Some(path) = &self.rules {
            let rules = RuleConfig::parse(&read(path)?).map_err(|error| format!("--rules {}: {error}", path.display()))?;
            context = context.with_rules(rules);
        }
        if let Some(path) = &self.old {
            context = context.with_stored(&read(path)?).map_err(|error| format!("--old {}: {error}", path.display()))?;
        }
        Ok(context)
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
