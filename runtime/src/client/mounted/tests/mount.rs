//! A Secret's mount.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::servers::{Authority, Issued};
use crate::client::{MountedKubeconfig, Protocol};

/// A Secret's mount as kubelet makes it.
pub(super) struct Mount {
    directory: TempDir,
    generation: u32,
}

impl Mount {
    pub(super) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), generation: 0 }
    }

    pub(super) fn source(&self) -> MountedKubeconfig {
        let source = MountedKubeconfig::new(self.directory.path(), Protocol::Http1);
        MountedKubeconfig { poll: Duration::from_millis(20), ..source }
    }

    /// The next generation: a server, its authority, and a client's certificate.
    pub(super) fn replace(&mut self, server: &str, authority: &Authority, client: &Issued) {
        let kubeconfig = kubeconfig(server, "{client-certificate: tls.crt, client-key: tls.key}");
        self.replace_kubeconfig(&kubeconfig, authority, client);
    }

    pub(super) fn replace_kubeconfig(&mut self, kubeconfig: &str, authority: &Authority, client: &Issued) {
        self.write(&[
            ("kubeconfig", kubeconfig),
            ("ca.crt", &authority.pem()),
            ("tls.crt", &client.certificate.pem()),
            ("tls.key", &client.key.serialize_pem()),
        ]);
    }

    pub(super) fn write(&mut self, files: &[(&str, &str)]) {
        self.generation += 1;
        let root = self.directory.path();
        let name = format!("..generation-{}", self.generation);
        fs::create_dir(root.join(&name)).unwrap();
        for (file, content) in files {
            fs::write(root.join(&name).join(file), content).unwrap();
            if root.join(file).symlink_metadata().is_err() {
                symlink(Path::new("..data").join(file), root.join(file)).unwrap();
            }
        }
        symlink(&name, root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        let _ = fs::remove_dir_all(root.join(format!("..generation-{}", self.generation - 1)));
    }
}

pub(super) fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: hub, cluster: {{server: '{server}', certificate-authority: ca.crt}}}}]\n\
         contexts: [{{name: c, context: {{cluster: hub, user: u, namespace: configuration}}}}]\n\
         users: [{{name: u, user: {user}}}]\n"
    )
}
