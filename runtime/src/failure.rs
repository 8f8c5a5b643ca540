//! Why a request failed, in a form to show and to compare.

use std::fmt;

use kube::core::Status;
use kube::runtime::watcher;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status, where the API server gave one: 403 means that a right is missing, 404 that the kind isn't served.
    pub code: Option<u16>,
    /// What the API server said, or else what went wrong on the way to it.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} ({code})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl From<&Status> for Failure {
    fn from(status: &Status) -> Self {
        let message = if status.message.is_empty() { &status.reason } else { &status.message };
        Self { code: Some(status.code), message: message.clone() }
    }
}

impl From<&kube::Error> for Failure {
    fn from(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from(&**status),
            _ => Self { code: None, message: error.to_string() },
        }
    }
}

impl From<&watcher::Error> for Failure {
    fn from(error: &watcher::Error) -> Self {
        use watcher::Error;
        match error {
            Error::InitialListFailed(error) | Error::WatchStartFailed(error) | Error::WatchFailed(error) => {
                error.into()
            }
            Error::WatchError(status) => Self::from(&**status),
            _ => Self { code: None, message: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_the_server_said() {
        let mut status =
            Status { code: 403, reason: "Forbidden".into(), message: "you may not".into(), ..Status::default() };
        let error = kube::Error::Api(Box::new(status.clone()));
        let failure = Failure::from(&watcher::Error::InitialListFailed(error));
        assert_eq!((failure.code, failure.to_string()), (Some(403), "you may not (403)".to_owned()));
        status.message.clear();
        assert_eq!(Failure::from(&status).to_string(), "Forbidden (403)");
    }

    #[test]
    fn says_what_happened_on_the_way() {
        let failure = Failure::from(&kube::Error::LinesCodecMaxLineLengthExceeded);
        assert_eq!((failure.code, failure.to_string().is_empty()), (None, false));
    }
}
