//! `cargo rig`: real clusters by hand.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use rig::{InstanceId, Options, Progress, Rig, check, demo, generate, host, images, lifecycle, status};

/// Real Kubernetes clusters with Open Cluster Management on this machine.
#[derive(Parser)]
#[command(name = "cargo rig", bin_name = "cargo rig", version)]
struct Arguments {
    /// Which instance: 1 to 8 of a-z and 0-9.
    #[arg(long, global = true, default_value = "demo", value_name = "ID")]
    instance: InstanceId,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows tenant records at work on a hub and two members, and leaves them running.
    Demo {
        /// Stop at the end; fail if anything was not as expected.
        #[arg(long)]
        once: bool,
    },
    /// Starts a hub and its members, or uses those that run.
    Up {
        /// How many managed clusters.
        #[arg(long, default_value_t = 2, value_name = "N")]
        members: u8,
    },
    /// Ends an instance and removes everything of it.
    Down,
    /// Shows what instances there are, and how they are.
    Status,
    /// Prints the path of a kubeconfig.
    Kubeconfig {
        /// A cluster (hub, cluster1, ...); without it, one file with all of them.
        #[arg(value_name = "NAME")]
        cluster: Option<String>,
    },
    /// Builds the images of the hub manager and of the agent, and prints the archives' paths.
    Image {
        /// Load them into the instance.
        #[arg(long)]
        load: bool,
    },
    /// Writes the generated files: CRDs, RBAC, copies in the chart, reference pages.
    Generate {
        /// Only look whether they are up to date; fail if not.
        #[arg(long)]
        check: bool,
    },
    /// Checks everything: formatting, lints, generated files, tests, then the end-to-end suites on clusters of
    /// their own.
    Test,

    /// Makes the namespaces of a host.
    #[command(hide = true)]
    Enter { dir: PathBuf },
    /// Process 1 of a host.
    #[command(hide = true)]
    Host { dir: PathBuf },
    /// Removes an instance when its owner has gone.
    #[command(hide = true)]
    Guard,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(Arguments { instance, command }: Arguments) -> Result<()> {
    let progress = Progress::new();
    match command {
        Command::Demo { once } => demo::run(instance, once, &progress),
        Command::Up { members } => {
            let rig = Rig::up(&Options { id: instance, members, owned: false }, &progress)?;
            println!("export KUBECONFIG={}", rig.kubeconfig()?.display());
            println!("export PATH={}:$PATH", rig.tools().display());
            Ok(())
        }
        Command::Down => progress.step("removing the instance", || lifecycle::down(&instance)),
        Command::Status => {
            lifecycle::reap_orphans(&progress)?;
            print!("{}", status::render()?);
            Ok(())
        }
        Command::Kubeconfig { cluster } => {
            let rig = Rig::open(&instance)?;
            let path = match cluster {
                Some(name) => rig.find(&name)?.kubeconfig(),
                None => rig.kubeconfig()?,
            };
            println!("{}", path.display());
            Ok(())
        }
        Command::Image { load } => {
            let images = images::ours(&progress)?;
            println!("{}\n{}", images.hub.display(), images.agent.display());
            if load {
                progress.step("loading the images", || Rig::open(&instance)?.load_images(&images))?;
            }
            Ok(())
        }
        Command::Generate { check: true } => generate::check(),
        Command::Generate { check: false } => generate::write(),
        Command::Test => check::run(),
        Command::Enter { dir } => host::enter(&dir),
        Command::Host { dir } => host::host(&dir),
        Command::Guard => lifecycle::guard(&instance),
    }
}
