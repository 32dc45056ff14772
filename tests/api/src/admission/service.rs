//! What a Service does, for replicas on one machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::replica::Place;

/// Time between two looks at the readiness of a replica.
const PERIOD: Duration = Duration::from_millis(250);

/// Takes new connections on one port to the replicas that are ready, in turn, and to the next one if nobody listens there. Connections
/// that are open stay where they are.
pub struct Service {
    /// Where it listens.
    pub port: u16,
    backends: Arc<Mutex<Vec<Backend>>>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Clone, Copy)]
struct Backend {
    place: Place,
    ready: bool,
}

impl Drop for Service {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Service {
    /// A Service without replicas.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("bound").port();
        let backends = Arc::new(Mutex::new(Vec::new()));
        let tasks = [tokio::spawn(accept(listener, backends.clone())), tokio::spawn(probe(backends.clone()))];
        Self { port, backends, tasks }
    }

    /// From now on these are the replicas. Those that are new get connections when they are ready.
    pub fn select(&self, places: &[Place]) {
        let mut backends = self.backends.lock().expect("not poisoned");
        let ready = |place: &Place| backends.iter().any(|backend| backend.place == *place && backend.ready);
        let selected = places.iter().map(|place| Backend { place: *place, ready: ready(place) }).collect();
        *backends = selected;
    }
}

async fn accept(listener: TcpListener, backends: Arc<Mutex<Vec<Backend>>>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let turn: Vec<u16> = {
            let mut backends = backends.lock().expect("not poisoned");
            if !backends.is_empty() {
                backends.rotate_left(1);
            }
            backends.iter().filter(|backend| backend.ready).map(|backend| backend.place.admission).collect()
        };
        tokio::spawn(async move {
            for port in turn {
                if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                    let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    return;
                }
            }
        });
    }
}

async fn probe(backends: Arc<Mutex<Vec<Backend>>>) {
    loop {
        let known = backends.lock().expect("not poisoned").clone();
        for Backend { place, .. } in known {
            let ready = matches!(tokio::time::timeout(Duration::from_secs(1), place.unready()).await, Ok(Ok(None)));
            let mut backends = backends.lock().expect("not poisoned");
            for backend in backends.iter_mut().filter(|backend| backend.place == place) {
                backend.ready = ready;
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}
