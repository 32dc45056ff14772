use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::*;

/// A server's end with its activity, and the client's end.
fn pair() -> (Farewell<DuplexStream>, Arc<Activity>, DuplexStream) {
    let (server, client) = duplex(4096);
    let activity = Arc::new(Activity::default());
    (Farewell::new(server, activity.clone()), activity, client)
}

async fn read_once(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let length = timeout(Duration::from_secs(5), stream.read(&mut bytes)).await.expect("in time").expect("readable");
    bytes.truncate(length);
    bytes
}

#[tokio::test]
async fn an_idle_connection_is_closed_with_a_last_word() {
    let (mut server, activity, mut client) = pair();
    activity.close();
    assert!(read_once(&mut server).await.is_empty(), "for the server this is the end of the requests");
    let answer = String::from_utf8(read_once(&mut client).await).expect("text");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1\r\n") && answer.contains("connection: close\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");

    // A client that closes ends the waiting, one that does not only delays it.
    let start = Instant::now();
    server.shutdown().await.expect("shut down");
    assert!(start.elapsed() >= LINGER, "{:?}", start.elapsed());
    client.write_all(b"POST / HTTP/1.1\r\n").await.expect("nobody resets the connection");
}

#[tokio::test]
async fn a_client_that_closes_is_not_waited_for() {
    let (mut server, activity, mut client) = pair();
    activity.close();
    assert!(read_once(&mut server).await.is_empty());
    client.write_all(b"POST crossed the closing").await.expect("written");
    drop(client);
    let start = Instant::now();
    server.shutdown().await.expect("shut down");
    assert!(start.elapsed() < LINGER, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_request_that_has_arrived_is_read_and_not_turned_away() {
    let (mut server, activity, mut client) = pair();
    client.write_all(b"request").await.expect("written");
    activity.close();
    assert_eq!(read_once(&mut server).await, b"request");

    // While it is worked on, and until the answer is out, there is no last word.
    let guard = activity.request();
    let more = timeout(Duration::from_millis(50), read_once(&mut server)).await;
    assert!(more.is_err(), "busy: waits");
    drop(guard);
    let more = timeout(Duration::from_millis(50), read_once(&mut server)).await;
    assert!(more.is_err(), "the answer is not written yet: waits");
    server.write_all(b"answer").await.expect("written");
    server.flush().await.expect("flushed");
    assert_eq!(read_once(&mut client).await, b"answer");

    assert!(read_once(&mut server).await.is_empty(), "idle now");
    assert!(read_once(&mut client).await.starts_with(LAST_WORD));
}

#[tokio::test]
async fn nothing_is_said_before_the_process_ends() {
    let (mut server, _activity, mut client) = pair();
    assert!(timeout(Duration::from_millis(50), read_once(&mut server)).await.is_err());
    server.shutdown().await.expect("shut down");
    assert!(read_once(&mut client).await.is_empty(), "an ordinary end");
}
