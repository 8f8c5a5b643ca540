//! The programs that make up one cluster on one host: their flags and configuration files.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::paths;

/// What a host must know to run its cluster. Written to a file by `up`, read by the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the cluster and of its only node.
    pub name: String,
    /// 0 for the hub, then the members.
    pub index: u8,
    /// The host's address in the instance's network.
    pub address: Ipv4Addr,
    /// Directory of the host: data, logs, keys.
    pub dir: PathBuf,
    /// Directory with the programs that the rig built.
    pub bin: PathBuf,
    /// Network namespace, as a file.
    pub network: PathBuf,
    /// Cgroup, relative to a hierarchy's root.
    pub cgroup: PathBuf,
    /// Image archives to load; the first is the sandbox image.
    pub images: Vec<PathBuf>,
}

impl Spec {
    /// Reads the spec of the host with directory `dir`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = Self::file_in(dir);
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not understood", path.display()))
    }

    /// Writes the spec to the host's directory.
    pub fn save(&self) -> Result<()> {
        paths::write_atomically(&Self::file_in(&self.dir), &serde_json::to_vec_pretty(self)?)
    }

    fn file_in(dir: &Path) -> PathBuf {
        dir.join("host.json")
    }

    /// The kubeconfig of the cluster's admin.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The kubeconfig of the kubelet.
    pub fn kubelet_kubeconfig(&self) -> PathBuf {
        self.dir.join("kubelet.kubeconfig")
    }

    /// Directory of keys and certificates.
    pub fn pki(&self) -> PathBuf {
        self.dir.join("pki")
    }

    /// The log of a component, or of the host itself.
    pub fn log(&self, component: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{component}.log"))
    }

    /// Address of the Service `kubernetes`.
    pub fn service_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 96 + self.index, 0, 1)
    }

    fn service_range(&self) -> String {
        format!("10.{}.0.0/16", 96 + self.index)
    }

    fn pod_range(&self) -> String {
        format!("10.244.{}.0/24", self.index)
    }

    fn config(&self, file: &str) -> PathBuf {
        self.dir.join("config").join(file)
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn key(&self, name: &str) -> String {
        self.pki().join(name).display().to_string()
    }
}

/// Image of the container that holds a pod's namespaces.
pub const SANDBOX_IMAGE: &str = "rig.local/pause:1";

/// A long-running program of a host.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its name, also of its log.
    pub name: &'static str,
    /// The program, a path or a name to look up.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Component {
    fn ours(spec: &Spec, name: &'static str, arguments: &[&str]) -> Self {
        Self { name, program: spec.bin.join(name), arguments: arguments.iter().map(ToString::to_string).collect() }
    }
}

/// etcd. Nothing here must survive a power failure, so it doesn't wait for the disk.
pub fn etcd(spec: &Spec) -> Component {
    Component::ours(
        spec,
        "etcd",
        &[
            &format!("--name={}", spec.name),
            &format!("--data-dir={}", spec.file("etcd")),
            "--listen-client-urls=http://127.0.0.1:2379",
            "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--initial-advertise-peer-urls=http://127.0.0.1:2380",
            &format!("--initial-cluster={}=http://127.0.0.1:2380", spec.name),
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        ],
    )
}

/// kube-apiserver.
pub fn apiserver(spec: &Spec) -> Component {
    let key = |name| spec.key(name);
    Component::ours(
        spec,
        "kube-apiserver",
        &[
            "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=443",
            &format!("--advertise-address={}", spec.address),
            &format!("--tls-cert-file={}", key("apiserver.crt")),
            &format!("--tls-private-key-file={}", key("apiserver.key")),
            &format!("--client-ca-file={}", key("ca.crt")),
            &format!("--service-account-key-file={}", key("service-account.crt")),
            &format!("--service-account-signing-key-file={}", key("service-account.key")),
            "--service-account-issuer=https://kubernetes.default.svc",
            &format!("--service-cluster-ip-range={}", spec.service_range()),
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            // There is no DNS for the node's name.
            "--kubelet-preferred-address-types=InternalIP",
            &format!("--kubelet-client-certificate={}", key("apiserver-kubelet-client.crt")),
            &format!("--kubelet-client-key={}", key("apiserver-kubelet-client.key")),
            // OCM's agents look these up and complain if they are missing.
            &format!("--requestheader-client-ca-file={}", key("ca.crt")),
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ],
    )
}

/// kube-controller-manager.
pub fn controller_manager(spec: &Spec) -> Component {
    let key = |name| spec.key(name);
    Component::ours(
        spec,
        "kube-controller-manager",
        &[
            &format!("--kubeconfig={}", spec.admin_kubeconfig().display()),
            "--bind-address=127.0.0.1",
            &format!("--cluster-signing-cert-file={}", key("ca.crt")),
            &format!("--cluster-signing-key-file={}", key("ca.key")),
            &format!("--root-ca-file={}", key("ca.crt")),
            &format!("--service-account-private-key-file={}", key("service-account.key")),
            "--use-service-account-credentials=true",
            "--leader-elect=false",
        ],
    )
}

/// kube-scheduler.
pub fn scheduler(spec: &Spec) -> Component {
    let kubeconfig = format!("--kubeconfig={}", spec.admin_kubeconfig().display());
    Component::ours(spec, "kube-scheduler", &[&kubeconfig, "--bind-address=127.0.0.1", "--leader-elect=false"])
}

/// containerd, from the distribution.
pub fn containerd(spec: &Spec) -> Component {
    let config = spec.config("containerd.toml").display().to_string();
    Component { name: "containerd", program: "containerd".into(), arguments: vec!["--config".into(), config] }
}

/// kubelet.
pub fn kubelet(spec: &Spec) -> Component {
    Component::ours(
        spec,
        "kubelet",
        &[
            &format!("--kubeconfig={}", spec.kubelet_kubeconfig().display()),
            &format!("--config={}", spec.config("kubelet.json").display()),
            &format!("--root-dir={}", spec.file("kubelet")),
            &format!("--cert-dir={}", spec.file("kubelet-pki")),
            &format!("--hostname-override={}", spec.name),
            &format!("--node-ip={}", spec.address),
        ],
    )
}

/// kube-proxy.
pub fn proxy(spec: &Spec) -> Component {
    Component::ours(spec, "kube-proxy", &[&format!("--config={}", spec.config("kube-proxy.json").display())])
}

/// The API socket of a host's containerd. `/run` is private to the host.
pub const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// Writes the configuration files that the components' flags name.
pub fn write_configs(spec: &Spec) -> Result<()> {
    let files = [
        ("containerd.toml", containerd_config(&spec.dir)),
        ("cni/10-pods.conflist", pretty(&cni_config(spec))),
        ("kubelet.json", pretty(&kubelet_config(spec))),
        ("kube-proxy.json", pretty(&proxy_config(spec))),
    ];
    for (name, content) in files {
        let path = spec.config(name);
        fs::create_dir_all(path.parent().expect("it is in a directory"))?;
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// `restrict_oom_score_adj`: a machine that is itself a container may lack CAP_SYS_RESOURCE.
fn containerd_config(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        r#"version = 2
root = "{dir}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{SANDBOX_IMAGE}"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{dir}/config/cni"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"#
    )
}

/// Each pod has a point-to-point link to its host, which routes: a bridge would need br_netfilter for Services
/// between pods of one node.
fn cni_config(spec: &Spec) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": spec.pod_range()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": spec.file("cni-addresses"),
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn kubelet_config(spec: &Spec) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": spec.key("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "resolvConf": "",
        "evictionHard": {"memory.available": "100Mi"},
        // Images are loaded, not pulled: one that is collected would be gone for good.
        "imageGCHighThresholdPercent": 100,
        // Secrets in pods follow within a second instead of a minute.
        "configMapAndSecretChangeDetectionStrategy": "Watch",
        "podLogsDir": spec.file("pod-logs"),
        "healthzBindAddress": "127.0.0.1",
    })
}

/// Connection tracking limits are the machine's; 0 leaves them alone.
fn proxy_config(spec: &Spec) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": spec.admin_kubeconfig()},
        "mode": "iptables",
        "clusterCIDR": spec.pod_range(),
        "hostnameOverride": spec.name,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}
