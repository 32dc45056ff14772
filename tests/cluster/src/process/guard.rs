//! Kills an instance's processes when the program that started them dies, however it dies.
//!
//! The guard is a shell that waits on a pipe whose other end only the starting process holds. The kernel closes that end at any
//! death, `kill -9` included; then the guard kills what the instance's record names and removes the instance's folder.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

/// `$1` is the instance's folder. A line on standard input means that everything was stopped in an orderly way.
const SCRIPT: &str = r#"
read -r word && exit 0
while read -r pid rest; do kill -s KILL -- "-$pid"; done <"$1/processes"
while read -r cidr; do ip route del local "$cidr" dev lo; done <"$1/routes"
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" && exit 0; sleep 0.2; done
"#;

/// A waiting guard. Dropping it without [`Guard::dismiss`] makes it act.
#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    /// Posts a guard over the instance in `dir`.
    pub(crate) fn post(dir: &Path) -> Result<Self> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "kuberay-testbed-guard"])
            .arg(dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting the guard shell")?;
        Ok(Self { shell })
    }

    /// The guard's process number.
    pub(crate) fn pid(&self) -> u32 {
        self.shell.id()
    }

    /// Sends the guard away: everything has been stopped already.
    pub(crate) fn dismiss(mut self) -> Result<()> {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // A guard that somebody killed cannot be told, and need not be.
            let _ = pipe.write_all(b"stopped\n");
        }
        self.shell.wait().context("waiting for the guard")?;
        Ok(())
    }
}
