//! The cable between machine and node. Its end in the node goes with the node, and takes the other end and the routes along.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use tokio::{net::UdpSocket, process::Command};

use super::{
    layout::{DNS_ADDRESS, HOST_ADDRESS, HOST_LINK, LINK_PREFIX, NODE_ADDRESS, NODE_LINK, POD_CIDR, SERVICE_CIDR},
    namespaces::Namespaces,
};
use crate::process;

/// Lays the cable, and the machine's routes to Pods and Services.
pub(super) async fn connect(namespaces: &Namespaces) -> Result<()> {
    let pid = namespaces.pid().to_string();
    let (host, node) = (format!("{HOST_ADDRESS}/{LINK_PREFIX}"), format!("{NODE_ADDRESS}/{LINK_PREFIX}"));
    let via = NODE_ADDRESS.to_string();
    ip(&["link", "add", HOST_LINK, "type", "veth", "peer", "name", NODE_LINK, "netns", &pid]).await?;
    ip(&["address", "add", &host, "dev", HOST_LINK]).await?;
    ip(&["link", "set", HOST_LINK, "up"]).await?;
    // No route out: a Pod that asks for the rest of the world is told at once that it is not there.
    let script = format!(
        "set -eu\nip link set lo up\nip address add {node} dev {NODE_LINK}\nip link set {NODE_LINK} up\n\
         echo 1 >/proc/sys/net/ipv4/ip_forward\n"
    );
    process::run(namespaces.command("/bin/sh").args(["-c", &script])).await.context("setting up the node's network")?;
    for cidr in [POD_CIDR, SERVICE_CIDR] {
        ip(&["route", "add", cidr, "via", &via, "dev", HOST_LINK]).await?;
    }
    Ok(())
}

/// Runs `ip` on the machine.
pub(super) async fn ip(arguments: &[&str]) -> Result<String> {
    process::run(Command::new("ip").args(arguments)).await
}

/// Whether the cluster's DNS knows the API server's Service. Asked at the Service's address, so that kube-proxy's rules are part of the proof.
pub(super) async fn dns_answers() -> bool {
    let ask = async {
        let socket = UdpSocket::bind((HOST_ADDRESS, 0)).await?;
        socket.send_to(&question("kubernetes.default.svc.cluster.local"), SocketAddr::from((DNS_ADDRESS, 53))).await?;
        let mut answer = [0_u8; 512];
        let length = socket.recv(&mut answer).await?;
        Ok::<_, std::io::Error>(has_answer(answer.get(..length).unwrap_or_default()))
    };
    matches!(tokio::time::timeout(Duration::from_secs(1), ask).await, Ok(Ok(true)))
}

/// A DNS query for an address of `name` (RFC 1035, section 4).
fn question(name: &str) -> Vec<u8> {
    let mut message = vec![0x4b, 0x52, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]; // id, recursion wanted, one question
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap_or(0));
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]); // end of name, type A, class IN
    message
}

/// Whether a reply reports no error and holds at least one answer.
fn has_answer(reply: &[u8]) -> bool {
    let code = reply.get(3).map(|byte| byte & 0x0f);
    let answers = reply.get(6..8).map(|bytes| bytes.iter().any(|byte| *byte != 0));
    code == Some(0) && answers == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_question_is_well_formed_and_a_reply_is_judged() {
        let query = question("a.bc");
        assert_eq!(&query[12..], b"\x01a\x02bc\x00\x00\x01\x00\x01");
        let reply = |code: u8, answers: u8| [0x4b, 0x52, 0x85, code, 0, 1, 0, answers, 0, 0, 0, 0];
        assert!(has_answer(&reply(0, 1)));
        assert!(!has_answer(&reply(3, 0)) && !has_answer(&reply(0, 0)) && !has_answer(&[]));
    }
}
