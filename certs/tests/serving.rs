//! Real TLS handshakes against what this crate hands out: swapping certificates, mounted files, and what clients then see.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use certs::directory::Directory;
use certs::{CertificateAuthority, Clock, Leaf, Lifetimes, Resolver, Status, server_config};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

const HOST: &str = "kuberay-webhook.ray-system.svc";

fn authority() -> CertificateAuthority {
    CertificateAuthority::generate("tests", &Lifetimes::default(), Clock::system().now()).expect("P-256 keys can be made")
}

fn leaf(authority: &CertificateAuthority) -> Leaf {
    authority.sign_leaf(&[HOST.into(), "127.0.0.1".into()], &Lifetimes::default(), Clock::system().now()).expect("signs")
}

/// An echo server behind `resolver`.
async fn serve(resolver: Arc<Resolver>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let acceptor = TlsAcceptor::from(Arc::new(server_config(resolver, &["http/1.1"]).expect("valid")));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(socket).await else { return };
                let mut byte = [0];
                while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
            });
        }
    });
    address
}

async fn connect(address: std::net::SocketAddr, trusted: &[&CertificateAuthority], host: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for authority in trusted {
        roots.add(authority.certificate().der().clone()).expect("a CA certificate");
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("valid")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(address).await?).await?;
    echo(&mut stream).await?;
    Ok(stream)
}

async fn echo(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    stream.write_all(b"x").await?;
    let mut byte = [0];
    stream.read_exact(&mut byte).await?;
    assert_eq!(&byte, b"x");
    Ok(())
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).expect("a server certificate").clone().into_owned()
}

#[tokio::test]
async fn a_swap_is_seen_by_new_connections_and_disturbs_no_old_one() {
    let resolver = Resolver::new();
    let address = serve(resolver.clone()).await;
    let (first, second) = (authority(), authority());
    assert!(connect(address, &[&first], HOST).await.is_err(), "without a certificate there is no handshake");

    let leaf_one = leaf(&first);
    resolver.set(leaf_one.served.clone());
    let mut old = connect(address, &[&first], HOST).await.expect("trusted");
    assert_eq!(&shown(&old), leaf_one.certificate.der());
    connect(address, &[&first], "127.0.0.1").await.expect("addresses are in the certificate");
    assert!(connect(address, &[&first], "other.ray-system.svc").await.is_err(), "and nothing else is");
    assert!(connect(address, &[&second], HOST).await.is_err(), "nor is it trusted through another CA");

    let leaf_two = leaf(&second);
    resolver.set(leaf_two.served.clone());
    let new = connect(address, &[&first, &second], HOST).await.expect("a client with both CAs finds the right one");
    assert_eq!(&shown(&new), leaf_two.certificate.der());
    echo(&mut old).await.expect("the old connection goes on");
}

/// Puts a pair where a mounted Secret would show it: in a fresh directory that `..data` is then pointed at.
fn swap(directory: &Path, generation: &str, chain: &[u8], key: &[u8]) {
    let fresh = directory.join(generation);
    std::fs::create_dir(&fresh).expect("fresh");
    std::fs::write(fresh.join("tls.crt"), chain).expect("written");
    std::fs::write(fresh.join("tls.key"), key).expect("written");
    let link = directory.join("..data_tmp");
    std::os::unix::fs::symlink(&fresh, &link).expect("linked");
    std::fs::rename(&link, directory.join("..data")).expect("swapped");
    for file in ["tls.crt", "tls.key"] {
        let _exists_already = std::os::unix::fs::symlink(Path::new("..data").join(file), directory.join(file));
    }
}

async fn until(status: &mut watch::Receiver<Status>, what: &str, holds: impl FnMut(&Status) -> bool) {
    tokio::time::timeout(Duration::from_secs(10), status.wait_for(holds))
        .await
        .unwrap_or_else(|_| panic!("{what}: not in time"))
        .expect("running");
}

#[tokio::test]
async fn mounted_files_are_followed_and_bad_ones_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let resolver = Resolver::new();
    let (directory, mut status) = Directory::new(folder.path().to_owned(), Duration::from_millis(20), resolver.clone());
    let running = tokio::spawn(directory.run());
    let address = serve(resolver.clone()).await;

    until(&mut status, "missing files are reported", |status| status.waiting.iter().any(|text| text.contains("tls.crt"))).await;

    // A CA's own pair serves as well as any: what matters here is which files are in use.
    let pair = |authority: &CertificateAuthority| (authority.certificate().to_pem().into_bytes(), authority.key_pem().into_bytes());
    let (first, second) = (authority(), authority());
    let (chain, key) = pair(&first);
    swap(folder.path(), "..1", &chain, &key);
    until(&mut status, "loaded", |status| status.not_after == Some(first.certificate().not_after) && status.waiting.is_empty()).await;
    let in_use = |resolver: &Resolver| resolver.get().expect("loaded").cert.first().expect("a chain").clone();
    assert_eq!(&in_use(&resolver), first.certificate().der());

    let (other_chain, other_key) = pair(&second);
    for (generation, chain, key) in
        [("..2", &chain, &other_key), ("..3", &b"garbage".to_vec(), &key), ("..4", &chain, &b"garbage".to_vec()), ("..5", &vec![], &vec![])]
    {
        swap(folder.path(), generation, chain, key);
        tokio::time::sleep(Duration::from_millis(60)).await; // three polls: enough to take the bad pair, were it taken
        assert_eq!(&in_use(&resolver), first.certificate().der(), "{generation}");
        assert!(status.borrow().problems(Clock::system().now()).is_empty(), "{generation}: the former pair goes on serving");
    }

    swap(folder.path(), "..6", &other_chain, &other_key);
    until(&mut status, "replaced", |status| status.not_after == Some(second.certificate().not_after)).await;
    tokio::time::timeout(Duration::from_secs(10), async {
        while &in_use(&resolver) != second.certificate().der() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the new pair is served");
    assert!(connect(address, &[&first], HOST).await.is_err());
    running.abort();
}
