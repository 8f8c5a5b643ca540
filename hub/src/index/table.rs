//! The rows of one kind, kept current by a watch.

use std::collections::HashMap;

use tenant_records_runtime::{ObjectKey, Update};

/// The rows of one kind by key.
///
/// A repeated list updates rows in place and then removes those that it didn't name, so that nothing is gone while
/// the list is under way and the memory never doubles.
#[derive(Debug)]
pub struct Table<R> {
    rows: HashMap<ObjectKey, Stored<R>>,
    round: u64,
    synced: bool,
}

#[derive(Debug)]
struct Stored<R> {
    row: R,
    round: u64,
}

/// A row that came, changed or went; what it is now stands in the table.
#[derive(Debug, PartialEq)]
pub struct Change<R> {
    /// The row's key.
    pub key: ObjectKey,
    /// What it was before.
    pub old: Option<R>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { rows: HashMap::new(), round: 0, synced: false }
    }
}

impl<R: PartialEq> Table<R> {
    /// Takes what a watch tells and returns what changed by it. An equal row is no change.
    pub fn apply(&mut self, update: Update<(ObjectKey, R)>) -> Vec<Change<R>> {
        match update {
            Update::Restarted => self.round += 1,
            Update::Applied((key, row)) => return self.insert(key, row).into_iter().collect(),
            Update::Undecodable(undecodable) => {
                let meta = undecodable.metadata;
                let key = ObjectKey::new(meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default());
                if let Some(stored) = self.rows.get_mut(&key) {
                    stored.round = self.round;
                }
            }
            Update::Deleted(key) => {
                let old = self.rows.remove(&key).map(|stored| stored.row);
                return old.map(|row| Change { key, old: Some(row) }).into_iter().collect();
            }
            Update::Synced => {
                self.synced = true;
                let round = self.round;
                let gone = self.rows.extract_if(|_, stored| stored.round < round);
                return gone.map(|(key, stored)| Change { key, old: Some(stored.row) }).collect();
            }
            Update::Failed(_) => {}
        }
        Vec::new()
    }

    /// Puts a row in, as a watch would.
    pub fn insert(&mut self, key: ObjectKey, row: R) -> Option<Change<R>> {
        let stored = Stored { row, round: self.round };
        match self.rows.get_mut(&key) {
            Some(known) => {
                let old = std::mem::replace(known, stored);
                (old.row != known.row).then_some(Change { key, old: Some(old.row) })
            }
            None => {
                self.rows.insert(key.clone(), stored);
                Some(Change { key, old: None })
            }
        }
    }

    /// The row of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<&R> {
        self.rows.get(key).map(|stored| &stored.row)
    }

    /// All rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &R)> {
        self.rows.iter().map(|(key, stored)| (key, &stored.row))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the first list is complete. Before that, a missing row says nothing.
    pub fn is_synced(&self) -> bool {
        self.synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("", name)
    }

    fn applied(name: &str, row: u8) -> Update<(ObjectKey, u8)> {
        Update::Applied((key(name), row))
    }

    #[test]
    fn a_repeated_list_removes_only_what_it_does_not_name_and_only_at_its_end() {
        let mut table = Table::default();
        for update in [Update::Restarted, applied("a", 1), applied("b", 1), Update::Synced] {
            table.apply(update);
        }
        assert_eq!(table.apply(Update::Restarted), vec![]);
        assert_eq!(table.apply(applied("a", 1)), vec![], "an equal row is no change");
        assert_eq!(table.get(&key("b")), Some(&1), "nothing is gone while the list is under way");
        assert_eq!(table.apply(Update::Synced), vec![Change { key: key("b"), old: Some(1) }]);
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn changes_carry_the_old_row() {
        let mut table = Table::default();
        assert_eq!(table.apply(applied("a", 1)), vec![Change { key: key("a"), old: None }]);
        assert_eq!(table.apply(applied("a", 2)), vec![Change { key: key("a"), old: Some(1) }]);
        assert_eq!(table.apply(Update::Deleted(key("a"))), vec![Change { key: key("a"), old: Some(2) }]);
        assert_eq!(table.apply(Update::Deleted(key("a"))), vec![]);
    }
}
