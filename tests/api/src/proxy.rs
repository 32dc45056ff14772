//! A TCP proxy between a program and the API server, to cut connections with.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Forwards connections until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy)]
struct State {
    /// Connections of an earlier generation are cut.
    generation: u64,
    /// Whether new connections are accepted and dropped at once.
    closed: bool,
}

impl Proxy {
    /// Forwards connections to `target` (`HOST:PORT`).
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(target: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (state, watched) = watch::channel(State { generation: 0, closed: false });
        let task = tokio::spawn(async move {
            while let Ok((inbound, _)) = listener.accept().await {
                if !watched.borrow().closed {
                    tokio::spawn(forward(inbound, target.clone(), watched.clone()));
                }
            }
        });
        Ok(Self { address, state, task })
    }

    /// Cuts every connection; new ones are forwarded.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.generation += 1);
    }

    /// Cuts every connection, and new ones until [`Proxy::open`].
    pub fn close(&self) {
        self.state.send_modify(|state| *state = State { generation: state.generation + 1, closed: true });
    }

    /// Forwards new connections again.
    pub fn open(&self) {
        self.state.send_modify(|state| state.closed = false);
    }

    /// A client configuration that goes through the proxy. The API server's certificate holds for any port of this machine.
    ///
    /// # Errors
    /// When the address is unusable.
    pub fn through(&self, mut config: kube::Config) -> Result<kube::Config> {
        config.cluster_url = format!("https://{}", self.address).parse().context("the proxy's address")?;
        Ok(config)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut inbound: TcpStream, target: String, mut state: watch::Receiver<State>) {
    let generation = state.borrow().generation;
    let Ok(mut outbound) = TcpStream::connect(target).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut inbound, &mut outbound) => {}
        _ = state.wait_for(|state| state.generation > generation) => {}
    }
}
