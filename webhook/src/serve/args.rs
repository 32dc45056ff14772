//! Flags of `kuberay-webhook serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use shared::features::FeatureGates;

/// Flags of `serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Port of the admission paths (TLS). 0 takes any free port; the log says which.
    #[arg(long, default_value_t = 9443)]
    pub port: u16,

    /// Address of the admission paths. The default is every address of this machine, IPv6 and IPv4.
    #[arg(long, value_name = "IP")]
    pub bind_address: Option<IpAddr>,

    /// Where /metrics is served over plain HTTP: HOST:PORT, :PORT, or 0 to switch it off.
    #[arg(long, default_value = ":8080", value_name = "ADDRESS")]
    pub metrics_addr: ListenAddress,

    /// Where /healthz and /readyz are served over plain HTTP: HOST:PORT, :PORT, or 0 to switch them off.
    #[arg(long, default_value = ":8081", value_name = "ADDRESS")]
    pub health_probe_bind_address: ListenAddress,

    /// Feature gates of the operator that works on the objects: Name=true,Other=false.
    #[arg(long, default_value = "", value_name = "LIST", hide_default_value = true)]
    pub feature_gates: FeatureGates,

    /// File with fleet defaults that mutation fills in; re-read while running.
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,

    /// File that turns rules into warnings, by rule id and namespace; re-read while running.
    #[arg(long, value_name = "FILE")]
    pub rules_file: Option<PathBuf>,

    /// Where the serving certificate comes from.
    #[arg(long, value_enum, default_value_t = CertMode::SelfManaged)]
    pub cert_mode: CertMode,

    /// Directory with tls.crt and tls.key, followed while running; for --cert-mode secret (also with cert-manager).
    #[arg(long, default_value = "/etc/kuberay-webhook/certs", value_name = "DIR")]
    pub cert_dir: PathBuf,

    /// Secret that keeps the CA; for --cert-mode self-managed.
    #[arg(long, default_value = "kuberay-webhook-ca", value_name = "NAME")]
    pub secret_name: String,

    /// Namespace of the Secret and of the Service. Default: the namespace of the Pod, else that of the kubeconfig.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Service under which API servers reach the webhook: the serving certificate is made out to it.
    #[arg(long, default_value = "kuberay-webhook", value_name = "NAME")]
    pub service_name: String,

    /// Further host names or addresses for the serving certificate; for webhooks registered by URL. May be repeated.
    #[arg(long = "certificate-host", value_name = "HOST", value_delimiter = ',')]
    pub certificate_hosts: Vec<String>,

    /// Webhook configurations whose caBundle is kept up to date: for each name the validating and the mutating one, if they exist.
    /// May be repeated.
    #[arg(long = "webhook-configuration", default_value = "kuberay-webhook", value_name = "NAME", value_delimiter = ',')]
    pub webhook_configurations: Vec<String>,

    /// Kubeconfig file; without it the Pod's service account, else the usual places of kubectl.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Form of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// What is logged: error, warn, info, debug or trace, or a list such as info,certs=debug.
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub log_level: String,
}

/// Where the serving certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CertMode {
    /// A CA of its own, kept in a Secret, rotated, and injected into the webhook configurations.
    SelfManaged,
    /// Files that somebody else keeps: a mounted Secret, by hand or from cert-manager.
    Secret,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Console,
}

/// An address to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// Do not listen.
    Off,
    /// This port on every address of the machine.
    Everywhere(u16),
    /// This address only.
    At(SocketAddr),
}

/// The text is not an address to listen on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address to listen on: write HOST:PORT with an IP address (or localhost) as HOST, :PORT, or 0 for off")]
pub struct ListenAddressError(String);

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ListenAddressError(text.to_owned());
        if text == "0" {
            return Ok(Self::Off);
        }
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(Self::Everywhere).map_err(|_| wrong());
        }
        let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        numeric.as_deref().unwrap_or(text).parse().map(Self::At).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_controllers_write_them() {
        for (text, wanted) in [
            ("0", Some(ListenAddress::Off)),
            (":8080", Some(ListenAddress::Everywhere(8080))),
            (":0", Some(ListenAddress::Everywhere(0))),
            ("127.0.0.1:1", Some(ListenAddress::At(([127, 0, 0, 1], 1).into()))),
            ("localhost:1", Some(ListenAddress::At(([127, 0, 0, 1], 1).into()))),
            ("[::1]:9", Some(ListenAddress::At("[::1]:9".parse().expect("an address")))),
            ("", None),
            (":", None),
            (":99999", None),
            ("example.com:80", None),
        ] {
            assert_eq!(text.parse().ok(), wanted, "{text}");
        }
    }
}
