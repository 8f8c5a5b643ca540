//! The objects of one kind, kept current by a watch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kube::Resource;

use crate::watch::{ObjectKey, Update};

/// The objects of one kind by key. For kinds with few objects; large kinds belong into an index of their own.
///
/// A repeated list replaces objects in place, so that it never needs twice the memory.
#[derive(Debug)]
pub struct Cache<K> {
    objects: HashMap<ObjectKey, Arc<K>>,
    unseen: HashSet<ObjectKey>,
    synced: bool,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { objects: HashMap::new(), unseen: HashSet::new(), synced: false }
    }
}

impl<K: Resource> Cache<K> {
    /// Takes what a watch tells and returns the keys of objects that may have changed.
    pub fn apply(&mut self, update: Update<K>) -> Vec<ObjectKey> {
        match update {
            Update::Restarted => {
                self.unseen = self.objects.keys().cloned().collect();
                Vec::new()
            }
            Update::Applied(object) => {
                let key = ObjectKey::of(&object);
                self.unseen.remove(&key);
                let same = self.objects.get(&key).is_some_and(|old| same_version(&**old, &object));
                self.objects.insert(key.clone(), Arc::new(object));
                if same { Vec::new() } else { vec![key] }
            }
            Update::Undecodable(bad) => {
                let meta = bad.metadata;
                let key = ObjectKey::new(meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default());
                self.unseen.remove(&key);
                Vec::new()
            }
            Update::Deleted(key) => {
                self.unseen.remove(&key);
                self.objects.remove(&key).map(|_| key).into_iter().collect()
            }
            Update::Synced => {
                self.synced = true;
                let gone: Vec<_> = self.unseen.drain().collect();
                for key in &gone {
                    self.objects.remove(key);
                }
                gone
            }
            Update::Failed(_) => Vec::new(),
        }
    }

    /// Whether the first list is complete. Before that, a missing object says nothing.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// The object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All objects, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter()
    }
}

fn same_version<K: Resource>(a: &K, b: &K) -> bool {
    let version = |object: &K| (object.meta().uid.clone(), object.meta().resource_version.clone());
    let (a, b) = (version(a), version(b));
    a.1.is_some() && a == b
}
