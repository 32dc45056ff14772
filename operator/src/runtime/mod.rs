//! Watches and caches, leader lease, events, metrics, health: all the kube-rs plumbing.
