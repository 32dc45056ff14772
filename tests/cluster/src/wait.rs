//! Waiting on a condition with a deadline.

use std::{future::Future, time::Duration};

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

/// Asks `probe` again and again until it gives a value.
///
/// `Ok(None)` means "not yet"; an error is final.
///
/// # Errors
/// The probe's error, or that `what` did not happen within `limit`.
pub async fn until<T, F>(what: &str, limit: Duration, mut probe: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(20);
    loop {
        if let Some(value) = probe().await.with_context(|| format!("waiting for {what}"))? {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("{what} did not happen within {} s", limit.as_secs());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}
