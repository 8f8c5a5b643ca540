//! Tells a story on a terminal: numbered steps, each with the commands that are run and what to see.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::process::wait_until;
use crate::progress::{Progress, elapsed};

/// Columns of a command's output; with its margin it fits a terminal of 100.
const WIDTH: usize = 92;

/// Prints a story: numbered steps; in each, commands with their output, and sights with a tick.
#[derive(Debug)]
pub struct Story<'a> {
    progress: &'a Progress,
    number: usize,
    total: usize,
}

impl<'a> Story<'a> {
    /// A story of `total` steps.
    pub fn new(progress: &'a Progress, total: usize) -> Self {
        Self { progress, number: 0, total }
    }

    /// Begins the next step.
    pub fn step(&mut self, title: &str) {
        self.number += 1;
        self.progress.say(&format!("\n{}/{}  {title}", self.number, self.total));
    }

    /// Shows a command as a user would type it, runs what stands for it, and shows its output.
    pub fn command(&self, line: &str, run: impl FnOnce() -> Result<String>) -> Result<String> {
        self.progress.say(&format!("     $ {line}"));
        let output = self.progress.waiting(line, run).with_context(|| format!("`{line}`"))?;
        for line in output.trim_end().lines().flat_map(wrap) {
            self.progress.say(&format!("       {line}"));
        }
        Ok(output)
    }

    /// Waits until `probe` sees `what`, and ticks it off.
    pub fn see<T>(&self, what: impl Display, timeout: Duration, probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let what = what.to_string();
        let start = Instant::now();
        let seen = self.progress.waiting(&what, || wait_until(&what, timeout, probe))?;
        self.progress.say(&format!("     ✓ {what} ({})", elapsed(start.elapsed())));
        Ok(seen)
    }
}

/// A long line in pieces that fit, broken between words.
fn wrap(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    // Split with the spaces kept, so that columns stay as they are.
    for word in line.split_inclusive(' ') {
        let last = pieces.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + word.trim_end().chars().count() > WIDTH {
            pieces.push(format!("  {word}"));
        } else {
            last.push_str(word);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrap("a   b"), ["a   b"]);
        let pieces = wrap(&"word ".repeat(40));
        assert!(pieces.len() == 3 && pieces.iter().all(|piece| piece.trim_end().len() <= WIDTH), "{pieces:?}");
        assert_eq!(wrap(&"x".repeat(200)).len(), 1, "a word stays whole");
    }
}
