//! The end-to-end suite: real clusters, real OCM, our charts and images, driven only from outside.
//!
//! Every scenario starts from where the demo ends: the chart installed with an install strategy that chooses both
//! clusters, the add-on available there, and the demo's tenant with its record. Each leaves it so.

mod addon;
mod certificates;
mod crash;
mod demo;
mod fixture;
mod input;
mod outage;
mod rights;
mod watcher;
