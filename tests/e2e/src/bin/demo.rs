//! `make demo`: the SidecarSubmitterRestart guide on a real node with real Ray, shown step by step.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use e2e_tests::{
    guide::{self, Guide},
    install,
    show::Shell,
};
use testcluster::{node, platform, progress::Progress};

/// Runs the guide and cleans up.
#[derive(Parser)]
struct Arguments {
    /// Seconds that the guide's job works; the guide itself says 300.
    #[arg(long, env = "RUN_SECONDS", default_value_t = 60)]
    run_seconds: u32,
}

/// Times of the steps, for the summary.
struct Steps {
    started: Instant,
    done: Vec<(&'static str, u64)>,
}

impl Steps {
    fn begin(&self, title: &str) -> Instant {
        println!("\n=== {}. {title}", self.done.len() + 1);
        Instant::now()
    }

    fn end(&mut self, title: &'static str, begun: Instant) {
        self.done.push((title, begun.elapsed().as_secs()));
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut steps = Steps { started: Instant::now(), done: Vec::new() };
    let result = tokio::select! {
        result = demo(&arguments, &mut steps) => result,
        interrupted = testcluster::interrupted() => interrupted.and_then(|()| Err(anyhow::anyhow!("interrupted"))),
    };
    let cleared = node::down(&Progress::stderr()).await;
    println!("\n=== Summary");
    for (title, seconds) in &steps.done {
        println!("{seconds:>5} s  {title}");
    }
    println!("{:>5} s  in all", steps.started.elapsed().as_secs());
    match result.and(cleared) {
        Ok(()) => {
            println!("Everything the guide promises was seen, and everything is gone again.");
            println!("`make cluster-up` starts the same node to play with; `make cluster-down` ends it.");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn demo(arguments: &Arguments, steps: &mut Steps) -> Result<()> {
    platform::require_linux_root()?;
    let progress = Progress::stderr();

    let title = "Build both programs, start a Kubernetes node with them and with Ray";
    let begun = steps.begin(title);
    let node = install::node(&progress).await?;
    let shell = Shell::new(&node, true);
    shell.run("kubectl get nodes -o wide").await?;
    steps.end(title, begun);

    let title = "Install the chart with the feature gate";
    let begun = steps.begin(title);
    install::chart(&shell).await?;
    steps.end(title, begun);

    let guide = Guide::new(&node, &shell, arguments.run_seconds);
    let title = "Apply a job with a mistake: it is refused, with the reason";
    let begun = steps.begin(title);
    guide.refused().await?;
    steps.end(title, begun);

    let title = "Apply the guide's job and wait until it runs";
    let begun = steps.begin(title);
    guide.apply().await?;
    let running = guide.wait_running().await?;
    for (program, bytes) in guide::memory() {
        println!("resident memory of the {program}: {} KiB", bytes / 1024);
    }
    steps.end(title, begun);

    let title = "Stop the submitter: it is restarted, the job runs on";
    let begun = steps.begin(title);
    guide.stop_submitter(&running).await?;
    guide.verify_recovery(&running).await?;
    steps.end(title, begun);

    let title = "Wait until the job has succeeded";
    let begun = steps.begin(title);
    guide.wait_complete(&running).await?;
    steps.end(title, begun);

    let title = "Clean up";
    let begun = steps.begin(title);
    guide.delete().await?;
    install::remove_chart(&shell).await?;
    node::down(&progress).await?;
    let left = node::leftovers()?;
    anyhow::ensure!(left.is_empty(), "left behind:\n{}", left.join("\n"));
    println!("no process, mount, network or control group is left");
    steps.end(title, begun);
    Ok(())
}
