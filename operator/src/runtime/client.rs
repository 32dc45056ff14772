//! The client for the API server: where it is, who we are, how fast we may ask, and what is measured.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{HeaderValue, Request, Response, header::USER_AGENT};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Layer, Service};

use super::{metrics::Metrics, rate::Bucket};
use crate::settings::VERSION;

/// Finds the cluster: the given kubeconfig, or else `$KUBECONFIG`, the Pod's service account, `~/.kube/config`.
///
/// # Errors
/// A sentence for the user if there is no usable configuration.
pub async fn configuration(kubeconfig: &str, variable: Option<String>) -> Result<Config, String> {
    let options = KubeConfigOptions::default();
    let mut config = if !kubeconfig.is_empty() {
        let file = Kubeconfig::read_from(kubeconfig).map_err(|error| format!("cannot read the kubeconfig {kubeconfig}: {error}"))?;
        Config::from_custom_kubeconfig(file, &options).await.map_err(|error| format!("the kubeconfig {kubeconfig} is unusable: {error}"))?
    } else if variable.is_some_and(|path| !path.is_empty()) {
        Config::from_kubeconfig(&options).await.map_err(|error| format!("the kubeconfig named by KUBECONFIG is unusable: {error}"))?
    } else {
        match Config::incluster() {
            Ok(config) => config,
            Err(incluster) => Config::from_kubeconfig(&options).await.map_err(|error| {
                format!("found no cluster: not running in a Pod ({incluster}), and no usable ~/.kube/config ({error}); use --kubeconfig")
            })?,
        }
    };
    config.headers.push((USER_AGENT, HeaderValue::from_str(&format!("kuberay-operator/{VERSION}")).unwrap_or(HeaderValue::from_static("kuberay-operator"))));
    config.connect_timeout = Some(Duration::from_secs(10));
    // A create that is repeated after a lost answer could make two Pods. Whoever makes a call knows what a repeat means.
    config.default_retry = false;
    Ok(config)
}

/// A client that measures and, with `limit` (requests a second and burst), restrains itself.
///
/// # Errors
/// When the configuration's certificates or credentials are unusable.
pub fn client(config: Config, metrics: Metrics, limit: Option<(f64, u32)>) -> Result<Client, kube::Error> {
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let bucket = limit.map(|(qps, burst)| Bucket::new(qps, burst, Instant::now()));
    Ok(ClientBuilder::try_from(config)?.with_layer(&Measure { metrics, host, bucket }).build())
}

#[derive(Clone)]
struct Measure {
    metrics: Metrics,
    host: String,
    bucket: Option<Bucket>,
}

impl<S> Layer<S> for Measure {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, measure: self.clone(), waiting: None, admitted: false }
    }
}

/// A service that waits for its turn and reports what each request took.
struct Measured<S> {
    inner: S,
    measure: Measure,
    waiting: Option<Pin<Box<Sleep>>>,
    admitted: bool,
}

impl<S> Measured<S> {
    /// Waits until the rate allows one more request.
    fn poll_admitted(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(bucket) = &mut self.measure.bucket else { return Poll::Ready(()) };
        if self.admitted {
            return Poll::Ready(());
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(bucket.take(Instant::now()))));
        ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        self.admitted = true;
        Poll::Ready(())
    }
}

impl<S, B, R> Service<Request<B>> for Measured<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        ready!(self.poll_admitted(context));
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.admitted = false;
        let (metrics, host) = (self.measure.metrics.clone(), self.measure.host.clone());
        let method = request.method().clone();
        let began = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            metrics.request(method.as_str(), &host, answer.as_ref().ok().map(|answer| answer.status().as_u16()), began.elapsed());
            answer
        })
    }
}
