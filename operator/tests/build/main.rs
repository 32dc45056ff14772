//! Builders, rule by rule. The rule stands beside each table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests are tests

mod autoscaler;
mod cleanup;
mod command;
mod env;
mod fixture;
mod golden;
mod hash;
mod metadata;
mod options;
mod outside;
mod probes;
mod ray_start;
mod resources;
mod scheduling;
mod security;
mod service;
mod volumes;
