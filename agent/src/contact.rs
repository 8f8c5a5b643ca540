//! Whether the hub is heard.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// An agent that hasn't heard the hub for that long counts as deaf.
const DEAF_AFTER: Duration = Duration::from_secs(90);

/// When the hub was heard last.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    heard: Mutex<Option<Instant>>,
}

impl Contact {
    /// The hub was heard just now.
    pub(crate) fn heard(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether the hub was heard lately; if not, for how long it wasn't.
    pub(crate) fn is_current(&self) -> Result<(), String> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match heard.map(|heard| heard.elapsed()) {
            None => Err("not heard yet".to_owned()),
            Some(age) if age >= DEAF_AFTER => Err(format!("not heard for {} s", age.as_secs())),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn contact_lasts_90_seconds() {
        let contact = Contact::default();
        assert_eq!(contact.is_current(), Err("not heard yet".to_owned()));
        contact.heard();
        advance(Duration::from_secs(89)).await;
        assert_eq!(contact.is_current(), Ok(()));
        advance(Duration::from_secs(1)).await;
        assert_eq!(contact.is_current(), Err("not heard for 90 s".to_owned()));
        contact.heard();
        assert_eq!(contact.is_current(), Ok(()));
    }
}
