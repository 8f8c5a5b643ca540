//! Says what is going on: a spinner with elapsed time on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How often a step tells that it still runs, where there is no terminal.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Where progress goes. Steps may run at the same time, from several threads.
#[derive(Clone, Debug)]
pub struct Progress {
    terminal: Option<MultiProgress>,
    quiet: bool,
}

impl Progress {
    /// Progress on standard error, as fits what that is.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { terminal, quiet: false }
    }

    /// No output at all.
    pub fn quiet() -> Self {
        Self { terminal: None, quiet: true }
    }

    /// Runs `work` as a step called `text` and says how long it took, or that it failed.
    pub fn step<T>(&self, text: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = self.waiting(text, work);
        let mark = if result.is_ok() { '✓' } else { '✗' };
        self.say(&format!("{mark} {text} ({})", elapsed(start.elapsed())));
        result
    }

    /// Shows `text` while `work` runs, and nothing afterwards.
    pub fn waiting<T>(&self, text: &str, work: impl FnOnce() -> T) -> T {
        let _shown = self.show(text, Instant::now());
        work()
    }

    /// A line by itself.
    pub fn say(&self, line: &str) {
        match &self.terminal {
            _ if self.quiet => {}
            Some(terminal) => {
                let _ = terminal.println(line);
            }
            None => eprintln!("{line}"),
        }
    }

    fn show(&self, text: &str, start: Instant) -> Shown {
        match &self.terminal {
            _ if self.quiet => Shown::Nothing,
            Some(terminal) => Shown::Spinner(spinner(terminal, text)),
            None => Shown::Lines { _heartbeat: heartbeat(text.to_owned(), start) },
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// Something shown until it is dropped.
enum Shown {
    Nothing,
    Spinner(ProgressBar),
    /// Dropping the sender ends the heartbeat.
    Lines {
        _heartbeat: Sender<()>,
    },
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Self::Spinner(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn spinner(terminal: &MultiProgress, text: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("the template is valid");
    let bar = terminal.add(ProgressBar::new_spinner().with_style(style).with_message(text.to_owned()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn heartbeat(text: String, start: Instant) -> Sender<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        while receiver.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
            eprintln!("… {text} ({})", elapsed(start.elapsed()));
        }
    });
    sender
}

/// A duration for people: `0.4 s`, `12 s`, `3 min 05 s`.
pub fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f32()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(elapsed(Duration::from_millis(420)), "0.4 s");
        assert_eq!(elapsed(Duration::from_secs(12)), "12 s");
        assert_eq!(elapsed(Duration::from_secs(185)), "3 min 05 s");
    }
}
