//! Running programs and waiting for things to come true.

use std::env;
use std::fmt::Display;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::paths;

/// How long [`wait_until`] rests between two looks.
const POLL: Duration = Duration::from_millis(200);

/// Runs a program to its end and returns its standard output.
///
/// Fails with the command line and its standard error if it can't be started or ends with anything but 0.
pub fn run(command: &mut Command) -> Result<String> {
    run_with_input(command, "")
}

/// As [`run`], with `input` as its standard input.
pub fn run_with_input(command: &mut Command, input: &str) -> Result<String> {
    let line = command_line(command);
    let mut child = bound(command)
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting `{line}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends before it has read its input says more by its exit code than this error would.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().with_context(|| format!("waiting for `{line}`"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = if stderr.trim().is_empty() { stdout.trim() } else { stderr.trim() };
        bail!("`{line}` failed ({}): {said}", output.status);
    }
    Ok(stdout.into_owned())
}

/// Cargo on this workspace, as if called by hand: what cargo tells the programs that it runs (the package's name and
/// directory, ...) would make it build some dependencies again.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    let told = |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for name in env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(told) {
        command.env_remove(name);
    }
    command.current_dir(paths::workspace());
    command
}

/// The same command, but killed by the kernel when this thread ends before it: else a program that outlives a
/// killed rig would work against the next one.
fn bound(command: &Command) -> Command {
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(name, value),
            None => bound.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        bound.current_dir(dir);
    }
    bound
}

/// The command as one would type it, without quoting.
pub fn command_line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Looks every 200 ms until `probe` returns a value, at most for `timeout`.
///
/// An error of the probe counts as "not yet": clusters refuse and time out while they start. The last error
/// is part of the failure.
pub fn wait_until<T>(what: impl Display, timeout: Duration, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    let mut last_error;
    loop {
        match probe() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => last_error = None,
            Err(error) => last_error = Some(error),
        }
        if start.elapsed() >= timeout {
            let failure = anyhow!("waited {} s in vain: {what}", timeout.as_secs());
            return Err(match last_error {
                Some(error) => error.context(failure),
                None => failure,
            });
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_command_and_reason() {
        let error = run(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c echo broken >&2; exit 3` failed (exit status: 3): broken");
    }

    #[test]
    fn input_reaches_the_program() {
        assert_eq!(run_with_input(&mut Command::new("cat"), "hello").unwrap(), "hello");
    }

    #[test]
    fn waiting_ends_with_the_last_error() {
        let result = wait_until("the sky to fall", Duration::ZERO, || -> Result<Option<()>> { bail!("still up") });
        assert_eq!(format!("{:#}", result.unwrap_err()), "waited 0 s in vain: the sky to fall: still up");
        assert_eq!(wait_until("nothing", Duration::ZERO, || Ok(Some(1))).unwrap(), 1);
    }
}
