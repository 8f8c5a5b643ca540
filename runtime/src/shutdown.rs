//! Graceful stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The wish that the process ends, seen by all its tasks.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// One that only [`request`](Self::request) triggers.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that SIGTERM and SIGINT trigger; a second signal ends the process at once.
    pub fn on_signals() -> io::Result<Self> {
        let shutdown = Self::new();
        let token = shutdown.token.clone();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                }
            };
            let signal = next().await;
            tracing::info!(signal, "stopping");
            token.cancel();
            let signal = next().await;
            tracing::warn!(signal, "stopping without waiting any longer");
            std::process::exit(1);
        });
        Ok(shutdown)
    }

    /// Asks everything to stop.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Whether everything should stop.
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until everything should stop.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// The token beneath, for what takes one.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_clones_see_the_request() {
        let shutdown = Shutdown::new();
        let other = shutdown.clone();
        assert!(!other.is_requested());
        shutdown.request();
        other.requested().await;
        assert!(other.is_requested() && other.token().is_cancelled());
    }
}
