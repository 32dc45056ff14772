//! A serving certificate from two mounted files, `tls.crt` and `tls.key`: a Secret that somebody else (cert-manager, a person) keeps.
//!
//! The files are read every few seconds and compared by content. A mounted Secret is swapped by renaming a symbolic link, which
//! file notifications on the files themselves never see.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use crate::resolver::Resolver;
use crate::status::Status;
use crate::x509::read_pair;

/// File with the certificate chain, serving certificate first.
pub const CERTIFICATE_FILE: &str = "tls.crt";
/// File with the private key.
pub const KEY_FILE: &str = "tls.key";
/// How often the files are read in production.
pub const POLL: Duration = Duration::from_secs(10);

/// No certificate chain or key is larger; a mistaken path must not fill the memory.
const LARGEST: u64 = 1 << 20;

/// The loop that follows a directory.
pub struct Directory {
    path: PathBuf,
    poll: Duration,
    resolver: Arc<Resolver>,
    status: watch::Sender<Status>,
    loaded: Option<[u8; 32]>,
}

impl Directory {
    /// Follows `path`, handing certificates to `resolver`. The receiver shows the [`Status`].
    pub fn new(path: PathBuf, poll: Duration, resolver: Arc<Resolver>) -> (Self, watch::Receiver<Status>) {
        let (status, receiver) = watch::channel(Status::starting());
        (Self { path, poll, resolver, status, loaded: None }, receiver)
    }

    /// Works until it is dropped. A pair that cannot be read or does not belong together leaves the former one in use.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.load().await {
                let text = format!("{}: {error}", self.path.display());
                if self.loaded.is_none() {
                    self.status.send_replace(Status { waiting: vec![text.clone()], ..Status::default() });
                }
                tracing::warn!(error = text, kept = self.loaded.is_some(), "cannot load the serving certificate");
            }
            tokio::time::sleep(self.poll).await;
        }
    }

    async fn load(&mut self) -> Result<(), String> {
        let mut error = String::new();
        // The files may be swapped between the two reads; the second try then sees a pair.
        for _ in 0..2 {
            let chain = read(&self.path.join(CERTIFICATE_FILE)).await?;
            let key = read(&self.path.join(KEY_FILE)).await?;
            let digest = Sha256::new().chain_update(&chain).chain_update([0]).chain_update(&key).finalize().into();
            if self.loaded == Some(digest) {
                return Ok(());
            }
            match read_pair(&chain, &key) {
                Ok((certificate, pair)) => {
                    self.resolver.set(Arc::new(pair));
                    self.loaded = Some(digest);
                    tracing::info!(not_after = %certificate.not_after, "serving certificate loaded");
                    self.status.send_replace(Status { not_after: Some(certificate.not_after), ..Status::default() });
                    return Ok(());
                }
                Err(problem) => error = problem.to_string(),
            }
        }
        Err(error)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.file_name().unwrap_or_default().display();
    let read = async {
        let mut content = Vec::new();
        tokio::fs::File::open(path).await?.take(LARGEST).read_to_end(&mut content).await?;
        Ok::<_, std::io::Error>(content)
    };
    read.await.map_err(|error| format!("{name}: {error}"))
}
