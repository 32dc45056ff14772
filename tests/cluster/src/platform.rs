//! Where the test cluster can run, and what to do elsewhere.

use anyhow::{Result, bail};

/// What somebody on another machine can do instead.
const INSTEAD: &str =
    "to use a cluster of your own instead, set KUBECONFIG to one with Kubernetes 1.30 or newer (1.35 or newer for the restart feature)";

/// The API profile's need.
///
/// # Errors
/// Elsewhere than on Linux, with a sentence that says what to do.
pub fn require_linux() -> Result<()> {
    check(cfg!(target_os = "linux"), true)
}

/// The node profile's need.
///
/// # Errors
/// Elsewhere than on Linux as root, with a sentence that says what to do.
pub fn require_linux_root() -> Result<()> {
    check(cfg!(target_os = "linux"), rustix::process::geteuid().is_root())
}

fn check(linux: bool, root: bool) -> Result<()> {
    match (linux, root) {
        (true, true) => Ok(()),
        (false, _) => bail!("the test cluster runs on Linux only; {INSTEAD}"),
        (true, false) => bail!("the test cluster's node needs root on this machine; {INSTEAD}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elsewhere_one_sentence_says_what_to_do() {
        assert!(check(true, true).is_ok());
        for (linux, root, start) in
            [(false, true, "the test cluster runs on Linux only"), (true, false, "the test cluster's node needs root")]
        {
            let text = check(linux, root).unwrap_err().to_string();
            assert!(text.starts_with(start) && text.contains("KUBECONFIG") && text.contains("1.35"), "{text}");
            assert_eq!(text.lines().count(), 1);
        }
    }
}
