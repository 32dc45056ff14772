//! What a person sees while something takes its time.
//!
//! A step that ends within two seconds says nothing. A slower one shows its name and the seconds gone: rewriting one line
//! on a terminal, with a new line now and then in a log.

use std::{
    future::Future,
    io::{IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

/// How long a step may take before it is announced.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// How often a slow step reports in a log.
const LOG_EVERY: Duration = Duration::from_secs(15);

/// Where progress goes. Cheap to clone.
#[derive(Clone)]
pub struct Progress {
    sink: Sink,
}

#[derive(Clone)]
enum Sink {
    Quiet,
    Terminal,
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.sink {
            Sink::Quiet => "Progress::Quiet",
            Sink::Terminal => "Progress::Terminal",
            Sink::Lines(_) => "Progress::Lines",
        })
    }
}

impl Progress {
    /// Standard error: one rewritten line where it is a terminal, plain lines elsewhere.
    pub fn stderr() -> Self {
        if std::io::stderr().is_terminal() { Self { sink: Sink::Terminal } } else { Self::lines(|line| eprintln!("{line}")) }
    }

    /// Says nothing at all.
    pub fn quiet() -> Self {
        Self { sink: Sink::Quiet }
    }

    /// Hands every line to `write`.
    pub fn lines(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { sink: Sink::Lines(Arc::new(write)) }
    }

    /// One line, at once.
    pub fn say(&self, line: &str) {
        match &self.sink {
            Sink::Quiet => {}
            Sink::Terminal => eprintln!("{line}"),
            Sink::Lines(write) => write(line),
        }
    }

    /// Runs `work`, showing `what` and the elapsed seconds when it takes more than two.
    pub async fn step<T>(&self, what: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let started = Instant::now();
        let every = if matches!(self.sink, Sink::Terminal) { Duration::from_secs(1) } else { LOG_EVERY };
        let mut ticks = tokio::time::interval_at(started + QUIET_FOR, every);
        let mut announced = false;
        tokio::pin!(work);
        let result = loop {
            tokio::select! {
                result = &mut work => break result,
                _ = ticks.tick() => {
                    announced = true;
                    self.tick(what, started.elapsed());
                }
            }
        };
        if announced {
            self.finish(what, started.elapsed(), result.is_ok());
        }
        result
    }

    fn tick(&self, what: &str, elapsed: Duration) {
        let line = format!("{what} … {} s", elapsed.as_secs());
        if matches!(self.sink, Sink::Terminal) { rewrite(&line) } else { self.say(&line) }
    }

    fn finish(&self, what: &str, elapsed: Duration, ok: bool) {
        let line = format!("{what}: {} after {} s", if ok { "done" } else { "failed" }, elapsed.as_secs());
        if matches!(self.sink, Sink::Terminal) {
            rewrite(&line);
            eprintln!();
        } else {
            self.say(&line);
        }
    }
}

/// Replaces the line under the cursor. A terminal that is gone is no reason to fail.
fn rewrite(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[2K{line}");
    let _ = stderr.flush();
}
