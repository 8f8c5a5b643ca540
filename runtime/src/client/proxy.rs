//! Which proxy leads to a server, if any.

use std::env;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::ClientError;

/// A proxy to connect through.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    target: Intercept,
    /// Who may vouch for it beside the authorities of the kubeconfig, in DER.
    pub(super) authorities: Vec<Vec<u8>>,
}

/// What the environment says of proxies.
#[derive(Clone, Debug, Default)]
pub(super) struct ProxyEnvironment {
    https_proxy: String,
    no_proxy: String,
}

impl ProxyEnvironment {
    pub(super) fn read() -> Self {
        let first = |names: [&str; 2]| {
            names.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty())).unwrap_or_default()
        };
        Self { https_proxy: first(["HTTPS_PROXY", "https_proxy"]), no_proxy: first(["NO_PROXY", "no_proxy"]) }
    }
}

impl Proxy {
    /// The proxy for a server: that of its kubeconfig, else that of the environment unless `NO_PROXY` names the server.
    ///
    /// As in every other client, `NO_PROXY` doesn't overrule the kubeconfig.
    pub(super) fn choose(
        server: &Uri,
        kubeconfig: Option<&str>,
        environment: &ProxyEnvironment,
    ) -> Result<Option<Self>, ClientError> {
        match kubeconfig.filter(|url| !url.is_empty()) {
            Some(url) => Self::parse(url).map(Some),
            None if environment.https_proxy.is_empty() || environment.bypasses(server) => Ok(None),
            None => Self::parse(&environment.https_proxy).map(Some),
        }
    }

    pub(super) fn parse(url: &str) -> Result<Self, ClientError> {
        let proxied = Uri::from_static("https://any.invalid");
        match Matcher::builder().https(url).build().intercept(&proxied) {
            Some(proxy) if matches!(proxy.uri().scheme_str(), Some("http" | "https" | "socks5")) => {
                Ok(Self { target: proxy, authorities: Vec::new() })
            }
            _ => Err(ClientError::Proxy(without_password(url))),
        }
    }

    pub(super) fn uri(&self) -> &Uri {
        self.target.uri()
    }

    pub(super) fn basic_auth(&self) -> Option<&HeaderValue> {
        self.target.basic_auth()
    }

    pub(super) fn user_and_password(&self) -> Option<(&str, &str)> {
        self.target.raw_auth()
    }
}

impl ProxyEnvironment {
    fn bypasses(&self, server: &Uri) -> bool {
        if self.no_proxy.split(',').any(|entry| entry.trim() == "*") {
            return true;
        }
        let matcher = Matcher::builder().all("http://any.invalid").no(&self.no_proxy).build();
        matcher.intercept(server).is_none()
    }
}

fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => format!("...@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(server: &'static str, kubeconfig: Option<&str>, https_proxy: &str, no_proxy: &str) -> Option<String> {
        let environment = ProxyEnvironment { https_proxy: https_proxy.into(), no_proxy: no_proxy.into() };
        let proxy = Proxy::choose(&Uri::from_static(server), kubeconfig, &environment).unwrap();
        proxy.map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn the_kubeconfig_comes_first() {
        let server = "https://hub.example.com:6443";
        assert_eq!(choose(server, None, "", ""), None);
        assert_eq!(choose(server, None, "http://env:3128", ""), Some("http://env:3128/".into()));
        for no_proxy in ["", "hub.example.com"] {
            let chosen = choose(server, Some("http://own:3128"), "http://env:3128", no_proxy);
            assert_eq!(chosen, Some("http://own:3128/".into()));
        }
        assert_eq!(choose(server, Some(""), "", ""), None);
    }

    #[test]
    fn no_proxy_names_servers_not_proxies() {
        let cases = [
            ("https://hub.example.com", "hub.example.com", true),
            ("https://hub.example.com", ".example.com", true),
            ("https://hub.example.com", "example.com", true),
            ("https://hub.example.com", "other.com, ,hub.example.com", true),
            ("https://hub.example.com", "ub.example.com", false),
            ("https://hub.example.com", "proxy", false),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "10.1.2.3", true),
            ("https://10.1.2.3:6443", "192.168.0.0/16,nonsense/99", false),
            ("https://[fd00::1]:6443", "fd00::/8", true),
            ("https://10.1.2.3:6443", "*", true),
            ("https://hub.example.com", " * ", true),
        ];
        for (server, no_proxy, direct) in cases {
            let proxy = choose(server, None, "http://proxy:3128", no_proxy);
            assert_eq!(proxy.is_none(), direct, "{server} with NO_PROXY={no_proxy}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_telling_its_password() {
        for url in ["ftp://user:secret@proxy", "socks4://user:secret@proxy", "http://"] {
            let error = Proxy::parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn credentials_are_split_off() {
        let proxy = Proxy::parse("http://user:p%40ss@proxy:3128").unwrap();
        assert_eq!(proxy.uri(), "http://proxy:3128/");
        assert_eq!(proxy.basic_auth().unwrap(), "Basic dXNlcjpwQHNz");
        let proxy = Proxy::parse("socks5://user:pass@proxy:1080").unwrap();
        assert_eq!(proxy.user_and_password(), Some(("user", "pass")));
    }
}
