use certs::Status;
use http::{Method, Request as HttpRequest};
use tokio::sync::watch;
use tower::ServiceExt;

use super::*;

const PATH: &str = "/validate-ray-io-v1-rayjob";

fn app(reviewer: Reviewer) -> Arc<App> {
    let metrics = Arc::new(Metrics::new(watch::channel(Status::default()).1));
    Arc::new(App::with_reviewer(FeatureGates::default(), Arc::default(), metrics, reviewer))
}

fn post_json(body: impl Into<Body>) -> HttpRequest<Body> {
    HttpRequest::post(PATH).header(CONTENT_TYPE, "application/json").body(body.into()).expect("a request")
}

async fn send(app: &Arc<App>, request: HttpRequest<Body>) -> (StatusCode, HeaderMap, String) {
    let response = router(app).oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("in memory").to_bytes();
    (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).expect("text"))
}

/// A review that says how many bytes it was given.
fn measuring(_endpoint: Endpoint, _grounds: &Grounds, body: &[u8]) -> Result<Reviewed, EnvelopeError> {
    let facts = Facts {
        operation: "CREATE",
        allowed: true,
        namespace: String::new(),
        name: String::new(),
        dry_run: false,
        problem: None,
        report: shared::validation::Report::default(),
    };
    Ok(Reviewed { body: body.len().to_string().into_bytes(), facts })
}

#[tokio::test]
async fn sizes_up_to_the_limit_arrive_whole() {
    let app = app(measuring);
    for size in [1, LARGE_BODY, LARGE_BODY + 1, 3 << 20, MAX_BODY] {
        let (status, headers, text) = send(&app, post_json(vec![b'x'; size])).await;
        assert_eq!((status, text), (StatusCode::OK, size.to_string()));
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        // In small pieces and without a declared length, as a chunked body comes.
        let pieces =
            vec![b'x'; size].chunks(100_000).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect::<Vec<_>>();
        let (status, _, text) = send(&app, post_json(Body::from_stream(futures::stream::iter(pieces)))).await;
        assert_eq!((status, text), (StatusCode::OK, size.to_string()), "in pieces");
    }
    assert_eq!(app.large.available_permits(), LARGE_AT_ONCE, "every permit came back");
}

#[tokio::test]
async fn what_cannot_be_reviewed_gets_a_sentence() {
    let app = app(review);
    let broken = || Body::from_stream(futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
    let with = |method: Method, path: &str, content_type: Option<&str>| {
        let mut request = HttpRequest::builder().method(method).uri(path);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        request.body(Body::from("{}")).expect("a request")
    };
    for (name, request, status, wanted) in [
        ("GET", with(Method::GET, PATH, None), StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview"),
        ("unknown path", with(Method::POST, "/", None), StatusCode::NOT_FOUND, "/mutate-ray-io-v1-raycronjob"),
        ("no content type", with(Method::POST, PATH, None), StatusCode::UNSUPPORTED_MEDIA_TYPE, "missing; send application/json"),
        ("YAML", with(Method::POST, PATH, Some("application/yaml")), StatusCode::UNSUPPORTED_MEDIA_TYPE, "application/yaml"),
        ("empty", post_json(""), StatusCode::BAD_REQUEST, "the body is empty"),
        ("broken JSON", post_json("{"), StatusCode::BAD_REQUEST, "not JSON"),
        ("connection lost", post_json(broken()), StatusCode::BAD_REQUEST, "could not be read"),
        ("too large", post_json(vec![b' '; MAX_BODY + 1]), StatusCode::PAYLOAD_TOO_LARGE, "larger than 7 MiB"),
        ("far too large", post_json(vec![b' '; MAX_DISCARDED + 1]), StatusCode::PAYLOAD_TOO_LARGE, "larger than 7 MiB"),
    ] {
        let (found, headers, text) = send(&app, request).await;
        assert_eq!(found, status, "{name}: {text}");
        assert!(text.contains(wanted), "{name}: {text}");
        assert!(headers[CONTENT_TYPE].to_str().is_ok_and(|value| value.starts_with("text/plain")), "{name}");
    }
    let text = app.metrics.text();
    assert!(text.contains(r#"kuberay_webhook_requests_rejected_total{reason="too large"} 2"#), "{text}");
    assert!(text.contains("kuberay_webhook_reviews_in_flight 0"), "{text}");
    // With parameters, as some clients send it.
    let (status, _, text) = send(&app, with(Method::POST, PATH, Some("Application/JSON; charset=utf-8"))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("not an AdmissionReview"), "{text}");
}

#[tokio::test]
async fn a_panic_costs_one_answer_and_is_counted() {
    fn panicking(_endpoint: Endpoint, _grounds: &Grounds, body: &[u8]) -> Result<Reviewed, EnvelopeError> {
        panic!("secret content {body:?}")
    }
    let app = app(panicking);
    for size in [10, LARGE_BODY + 1] {
        let (status, _, text) = send(&app, post_json(vec![b'x'; size])).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(text.contains("bug in this webhook") && !text.contains("secret"), "{text}");
    }
    assert!(app.metrics.text().contains("kuberay_webhook_panics_total 2"));
    assert_eq!(app.large.available_permits(), LARGE_AT_ONCE);
}

#[tokio::test]
async fn clients_are_sent_elsewhere_while_draining() {
    let app = app(measuring);
    let (_, headers, _) = send(&app, post_json("x")).await;
    assert!(!headers.contains_key(CONNECTION));
    app.draining.store(true, Ordering::Relaxed);
    let (status, headers, _) = send(&app, post_json("x")).await;
    assert_eq!((status, headers.get(CONNECTION).map(HeaderValue::as_bytes)), (StatusCode::OK, Some(&b"close"[..])));
    let mut second = post_json("x");
    *second.version_mut() = Version::HTTP_2;
    let (_, headers, _) = send(&app, second).await;
    assert!(!headers.contains_key(CONNECTION), "HTTP/2 has no such header");
}
