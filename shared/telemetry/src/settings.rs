//! What the environment says about traces, in the variables that OpenTelemetry's specification names. Pure.
//!
//! The libraries read two more kinds by themselves: `OTEL_EXPORTER_OTLP_HEADERS` (`…_TRACES_HEADERS`), whose content belongs in no log,
//! and the sizes and times of batches (`OTEL_BSP_…`).

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use http::Uri;
use opentelemetry_sdk::trace::{Sampler, ShouldSample};
use percent_encoding::percent_decode_str;

/// How long the collector may take for an answer, unless the environment says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where collectors take spans in, below the address that is for all kinds of signals.
const PATH: &str = "v1/traces";

/// Where spans go, and which.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The collector's address for spans.
    pub(crate) endpoint: Uri,
    /// File with the CAs that the collector's certificate may come from; those of the system if absent.
    pub(crate) certificate: Option<PathBuf>,
    /// How long the collector may take for an answer.
    pub(crate) timeout: Duration,
    /// Which traces are sent.
    pub(crate) sampling: Sampling,
    /// What the collector is told about the program.
    pub(crate) resource: BTreeMap<String, String>,
    /// What was not understood, and is done without.
    pub(crate) remarks: Vec<String>,
}

/// Which traces are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampling {
    /// Share of those that begin here, from 0 to 1.
    ratio: f64,
    /// Whether a trace that began elsewhere is sent if its beginning is.
    parent_based: bool,
}

impl From<Sampling> for Box<dyn ShouldSample> {
    fn from(sampling: Sampling) -> Self {
        let Sampling { ratio, parent_based } = sampling;
        let own = if ratio >= 1.0 {
            Sampler::AlwaysOn
        } else if ratio <= 0.0 {
            Sampler::AlwaysOff
        } else {
            Sampler::TraceIdRatioBased(ratio)
        };
        Box::new(if parent_based { Sampler::ParentBased(Box::new(own)) } else { own })
    }
}

/// The environment; a variable that is set to nothing is not set.
struct Environment<F>(F);

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The variable for traces, or that for all signals: its full name and its value.
    fn exporter(&self, name: &str) -> Option<(String, String)> {
        let variables = [format!("OTEL_EXPORTER_OTLP_TRACES_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
        variables.into_iter().find_map(|variable| self.get(&variable).map(|value| (variable, value)))
    }
}

/// Reads the environment; nothing if nobody asks for traces.
///
/// # Errors
/// A sentence for the user, if traces are asked for in a way that cannot be followed.
pub(crate) fn read(program: &str, version: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Settings>, String> {
    let environment = Environment(variable);
    if environment.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    match environment.get("OTEL_TRACES_EXPORTER").as_deref() {
        None | Some("otlp") => {}
        Some("none") => return Ok(None),
        Some(other) => return Err(format!("OTEL_TRACES_EXPORTER is {other:?}; write otlp, or none to switch traces off")),
    }
    let Some(endpoint) = endpoint(&environment)? else { return Ok(None) };
    if let Some((variable, protocol)) = environment.exporter("PROTOCOL").filter(|(_, protocol)| protocol != "http/protobuf") {
        return Err(format!(
            "{variable} is {protocol:?}, and only http/protobuf is spoken: unset it, and name the collector's HTTP port, usually 4318"
        ));
    }
    let mut remarks = Vec::new();
    if let Some((variable, compression)) = environment.exporter("COMPRESSION").filter(|(_, compression)| compression != "none") {
        remarks.push(format!("{variable} is {compression:?}, and nothing is compressed here"));
    }
    Ok(Some(Settings {
        endpoint,
        certificate: environment.exporter("CERTIFICATE").map(|(_, path)| path.into()),
        timeout: timeout(&environment, &mut remarks),
        sampling: sampling(&environment, &mut remarks),
        resource: resource(program, version, &environment, &mut remarks),
        remarks,
    }))
}

/// The address for spans: as it is given for traces, or below the one that is given for all signals.
fn endpoint(environment: &Environment<impl Fn(&str) -> Option<String>>) -> Result<Option<Uri>, String> {
    let Some((variable, value)) = environment.exporter("ENDPOINT") else { return Ok(None) };
    if value.contains('@') {
        return Err(format!("{variable} holds credentials, which do not belong in an address: put them into OTEL_EXPORTER_OTLP_HEADERS"));
    }
    let wrong = || format!("{variable} is {value:?}, which is no address: write http://HOST:PORT or https://HOST:PORT");
    let whole = if variable.contains("TRACES") { value.clone() } else { format!("{}/{PATH}", value.trim_end_matches('/')) };
    let uri: Uri = whole.parse().map_err(|_| wrong())?;
    let usable = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    if usable { Ok(Some(uri)) } else { Err(wrong()) }
}

fn timeout(environment: &Environment<impl Fn(&str) -> Option<String>>, remarks: &mut Vec<String>) -> Duration {
    let Some((variable, value)) = environment.exporter("TIMEOUT") else { return TIMEOUT };
    value.parse().ok().filter(|milliseconds| *milliseconds > 0).map_or_else(
        || {
            remarks.push(format!("{variable} is {value:?} and no number of milliseconds: {} are taken", TIMEOUT.as_millis()));
            TIMEOUT
        },
        Duration::from_millis,
    )
}

fn sampling(environment: &Environment<impl Fn(&str) -> Option<String>>, remarks: &mut Vec<String>) -> Sampling {
    let everything = Sampling { ratio: 1.0, parent_based: true };
    let Some(name) = environment.get("OTEL_TRACES_SAMPLER") else { return everything };
    let parent_based = name.starts_with("parentbased_");
    let ratio = match name.strip_prefix("parentbased_").unwrap_or(&name) {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => match environment.get("OTEL_TRACES_SAMPLER_ARG") {
            None => 1.0,
            Some(value) => value.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio)).unwrap_or_else(|| {
                remarks.push(format!("OTEL_TRACES_SAMPLER_ARG is {value:?} and no number from 0 to 1: every trace is sent"));
                1.0
            }),
        },
        _ => {
            remarks.push(format!("OTEL_TRACES_SAMPLER {name:?} is not known here: every trace is sent, unless its caller says otherwise"));
            return everything;
        }
    };
    Sampling { ratio, parent_based }
}

/// What the program says of itself, and what the environment adds.
fn resource(
    program: &str,
    version: &str,
    environment: &Environment<impl Fn(&str) -> Option<String>>,
    remarks: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let own = [("service.name", program), ("service.version", version)];
    let mut resource: BTreeMap<String, String> = own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let list = environment.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((key, value)) if !key.is_empty() => {
                resource.insert(key.to_owned(), percent_decode_str(value).decode_utf8_lossy().into_owned());
            }
            _ => remarks.push(format!("OTEL_RESOURCE_ATTRIBUTES holds {entry:?}, which is not KEY=VALUE and is left out")),
        }
    }
    resource.extend(environment.get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name)));
    resource
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
