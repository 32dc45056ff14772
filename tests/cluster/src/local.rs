//! Small things that callers need to run a program on this machine beside the cluster.

use std::net::TcpListener;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

/// A port of the loopback address that nobody listens on. It is not reserved: the program that gets it should bind it soon.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Body of a successful answer from a port of the loopback address.
///
/// # Errors
/// When there is no answer, or one that is not a success.
pub async fn get(port: u16, path: &str) -> Result<String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let answer = client.get(format!("http://127.0.0.1:{port}{path}").parse()?).await?;
    ensure!(answer.status().is_success(), "{path} answers {}", answer.status());
    Ok(String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()).into_owned())
}
