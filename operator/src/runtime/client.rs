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
    config.headers.push((
        USER_AGENT,
        HeaderValue::from_str(&format!("kuberay-operator/{VERSION}")).unwrap_or(HeaderValue::from_static("kuberay-operator")),
    ));
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

#[cfg(test)]
mod tests {
    use tower::{ServiceBuilder, ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_named() {
        let error = configuration("/no/such/kubeconfig", None).await.map(|_| ()).unwrap_err();
        assert!(error.contains("/no/such/kubeconfig"), "{error}");
    }

    #[tokio::test]
    async fn requests_are_measured_and_wait_for_their_turn() {
        let metrics = Metrics::default();
        let bucket = Some(Bucket::new(20.0, 1, Instant::now()));
        let measure = Measure { metrics: metrics.clone(), host: "api:1".to_owned(), bucket };
        let answer = |request: Request<()>| async move {
            if request.uri().path() == "/fails" {
                Err(BoxError::from("broken"))
            } else {
                Ok(Response::builder().status(404).body(()).unwrap())
            }
        };
        let mut service = ServiceBuilder::new().layer(measure).service(service_fn(answer));
        let began = Instant::now();
        for path in ["/a", "/b", "/fails"] {
            let request = Request::builder().method("PATCH").uri(path).body(()).unwrap();
            let _ = service.ready().await.unwrap().call(request).await;
        }
        assert!(began.elapsed() >= Duration::from_millis(95), "two turns of 50 ms: {:?}", began.elapsed());
        let text = metrics.render();
        for line in [
            r#"rest_client_requests_total{code="404",method="PATCH",host="api:1"} 2"#,
            r#"rest_client_requests_total{code="<error>",method="PATCH",host="api:1"} 1"#,
            r#"rest_client_request_duration_seconds_count{verb="PATCH",host="api:1"} 3"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
