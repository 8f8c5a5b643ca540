//! Container images without a container engine: one-layer OCI archives around one static binary.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::builds::{Programs, hex};
use crate::components::SANDBOX_IMAGE;
use crate::instance::Lock;
use crate::paths;
use crate::process::{cargo, command_line, run};
use crate::progress::Progress;

/// The OCM release on the clusters.
pub const OCM_VERSION: &str = "v1.2.0";

/// The image of the hub manager, as pods name it.
pub const HUB_IMAGE: &str = concat!("docker.io/tenant-records/hub:", env!("CARGO_PKG_VERSION"));

/// The image of the agent, as pods name it.
pub const AGENT_IMAGE: &str = concat!("docker.io/tenant-records/agent:", env!("CARGO_PKG_VERSION"));

/// An image to be: everything that decides its content.
struct Image<'a> {
    name: String,
    binary: &'a Path,
    /// Whether the container runs the binary by itself; OCM's manifests name it.
    entrypoint: bool,
}

/// Archives of the images that the clusters run from the start.
#[derive(Clone, Debug)]
pub struct BaseImages {
    sandbox: PathBuf,
    registration_operator: PathBuf,
    registration: PathBuf,
    work: PathBuf,
    placement: PathBuf,
    addon_manager: PathBuf,
}

impl BaseImages {
    /// Those that a hub needs, the sandbox image first.
    pub fn of_hub(&self) -> Vec<PathBuf> {
        [
            &self.sandbox,
            &self.registration_operator,
            &self.registration,
            &self.work,
            &self.placement,
            &self.addon_manager,
        ]
        .map(Clone::clone)
        .into()
    }

    /// Those that a member needs, the sandbox image first.
    pub fn of_member(&self) -> Vec<PathBuf> {
        [&self.sandbox, &self.registration_operator, &self.registration, &self.work].map(Clone::clone).into()
    }
}

/// Writes the archives of the base images that are missing.
pub fn base(programs: &Programs, progress: &Progress) -> Result<BaseImages> {
    let sandbox = Image { name: SANDBOX_IMAGE.into(), binary: &programs.kubernetes.join("pause"), entrypoint: true };
    let ocm = |program: &str, image: &str| {
        let binary = programs.ocm.join(program);
        let name = format!("quay.io/open-cluster-management/{image}:{OCM_VERSION}");
        archive_of_build(&Image { name, binary: &binary, entrypoint: false }, progress)
    };
    Ok(BaseImages {
        sandbox: archive_of_build(&sandbox, progress)?,
        registration_operator: ocm("registration-operator", "registration-operator")?,
        registration: ocm("registration", "registration")?,
        work: ocm("work", "work")?,
        placement: ocm("placement", "placement")?,
        addon_manager: ocm("addon", "addon-manager")?,
    })
}

/// The archive of a program from a Go build. The build's directory identifies it: it need not be read again.
fn archive_of_build(image: &Image<'_>, progress: &Progress) -> Result<PathBuf> {
    let build = image.binary.parent().and_then(Path::file_name).context("a build has a directory")?;
    archive(image, &build.to_string_lossy(), progress)
}

/// Archives of this project's own images.
#[derive(Clone, Debug)]
pub struct OurImages {
    /// The hub manager.
    pub hub: PathBuf,
    /// The agent.
    pub agent: PathBuf,
}

/// Builds the hub manager and the agent as static binaries and writes their archives.
pub fn ours(progress: &Progress) -> Result<OurImages> {
    let binaries = progress.step("building the hub manager and the agent", build_ours)?;
    let image = |name: &str, program: &str| {
        let binary = binaries.join(program);
        let content = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
        let key = &hex(&Sha256::digest(&content))[..12];
        archive(&Image { name: name.into(), binary: &binary, entrypoint: true }, key, progress)
    };
    Ok(OurImages { hub: image(HUB_IMAGE, "tenant-records-hub")?, agent: image(AGENT_IMAGE, "tenant-records-agent")? })
}

/// Returns the directory of the binaries.
fn build_ours() -> Result<PathBuf> {
    let version = run(Command::new("rustc").arg("-vV"))?;
    let target = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let mut command = cargo();
    command
        .args(["build", "--quiet", "--release", "--message-format=json", "--target", target])
        .args(["--package", "tenant-records-hub", "--package", "tenant-records-agent", "--bins"])
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    let line = command_line(&command);
    let messages = run(&mut command)?;
    let executable = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    let executable = executable.with_context(|| format!("`{line}` built no program"))?;
    Ok(executable.parent().context("a program is in a directory")?.to_owned())
}

/// Where the archive of an image with content `key` is; written if it is missing.
fn archive(image: &Image<'_>, key: &str, progress: &Progress) -> Result<PathBuf> {
    let program = image.binary.file_name().context("a binary has a name")?.to_string_lossy();
    let dir = paths::cache()?.join("images");
    let path = dir.join(format!("{program}-{key}.tar"));
    if path.exists() {
        return Ok(path);
    }
    let _lock = Lock::take_file(&dir.join("images.lock"))?;
    if !path.exists() {
        progress.step(&format!("writing image {}", image.name), || {
            let binary = fs::read(image.binary).with_context(|| format!("reading {}", image.binary.display()))?;
            let layer = layer(&program, &binary)?;
            paths::remove_unfinished(&dir)?;
            let unfinished = paths::temporary_name(&path);
            let entrypoint = image.entrypoint.then(|| format!("/{program}"));
            write_archive(fs::File::create(&unfinished)?, &image.name, &layer, entrypoint.as_deref())?;
            Ok(fs::rename(&unfinished, &path)?)
        })?;
    }
    Ok(path)
}

/// A layer with one program in its root.
fn layer(program: &str, binary: &[u8]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::with_capacity(binary.len() + 4096));
    append(&mut tar, program, 0o755, binary)?;
    Ok(tar.into_inner()?)
}

/// Writes an OCI archive of an image with one layer, for user 10001.
fn write_archive(to: impl Write, name: &str, layer: &[u8], entrypoint: Option<&str>) -> Result<()> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("images for {other} are not supported: use an x86-64 or ARM64 machine"),
    };
    let layer = Blob::new("application/vnd.oci.image.layer.v1.tar", layer.to_vec());
    let config = Blob::json(
        "application/vnd.oci.image.config.v1+json",
        &json!({
            "architecture": architecture,
            "os": "linux",
            "config": {"User": "10001", "Entrypoint": entrypoint.as_slice()},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
        }),
    );
    let manifest = Blob::json(
        "application/vnd.oci.image.manifest.v1+json",
        &json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
        }),
    );
    let mut listed = manifest.descriptor();
    listed["annotations"] = json!({"io.containerd.image.name": name});
    let index = json!({"schemaVersion": 2, "manifests": [listed]});

    let mut tar = tar::Builder::new(to);
    append(&mut tar, "oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    append(&mut tar, "index.json", 0o644, index.to_string().as_bytes())?;
    for blob in [config, manifest, layer] {
        append(&mut tar, &blob.digest.replacen("sha256:", "blobs/sha256/", 1), 0o644, &blob.content)?;
    }
    tar.into_inner()?.flush()?;
    Ok(())
}

fn append(tar: &mut tar::Builder<impl Write>, name: &str, mode: u32, content: &[u8]) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len().try_into()?);
    header.set_mode(mode);
    tar.append_data(&mut header, name, content).with_context(|| format!("adding {name} to an archive"))
}

struct Blob {
    media_type: &'static str,
    digest: String,
    content: Vec<u8>,
}

impl Blob {
    fn new(media_type: &'static str, content: Vec<u8>) -> Self {
        Self { media_type, digest: format!("sha256:{}", hex(&Sha256::digest(&content))), content }
    }

    fn json(media_type: &'static str, value: &Value) -> Self {
        Self::new(media_type, value.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.content.len()})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use super::*;

    #[test]
    fn archive_is_complete() {
        let mut archive = Vec::new();
        let layer = layer("agent", b"binary").unwrap();
        write_archive(&mut archive, "docker.io/tenant-records/agent:1", &layer, Some("/agent")).unwrap();

        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), content);
        }
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let content = &files[&digest.replace("sha256:", "blobs/sha256/")];
            assert_eq!(hex(&Sha256::digest(content)), digest["sha256:".len()..]);
            assert_eq!(descriptor["size"], content.len());
            content.clone()
        };
        let json = |content: &[u8]| serde_json::from_slice::<Value>(content).unwrap();

        let index = json(&files["index.json"]);
        let listed = &index["manifests"][0];
        assert_eq!(listed["annotations"]["io.containerd.image.name"], "docker.io/tenant-records/agent:1");
        let manifest = json(&blob(listed));
        let config = json(&blob(&manifest["config"]));
        assert_eq!(config["config"], json!({"User": "10001", "Entrypoint": ["/agent"]}));
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(blob(&manifest["layers"][0]), layer);
    }
}
