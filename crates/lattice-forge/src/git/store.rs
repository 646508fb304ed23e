//! Items of a remote: read together, changed one compare-and-swap at a time.

use std::collections::BTreeMap;

use lattice_model::id::Oid;
use lattice_model::name::{BranchName, RefName};
use lattice_model::plan::Expected;
use lattice_model::remote::{GitRemote, Pushed, Refused, RemoteUpdate};

use super::item::ItemV1;
use crate::ForgeError;

/// Below this, one ref per issue or pull request.
const ITEMS: &str = "refs/lattice/forge/items/";

/// How often others may be faster before a change is given up.
const ATTEMPTS: usize = 30;

/// Items and branches of a remote, as they were at one moment.
pub(super) struct Reading {
    /// Numbers with the blobs that they point to.
    items: BTreeMap<u64, Oid>,
    branches: BTreeMap<BranchName, Oid>,
}

/// An item with the blob that it was read from.
pub(super) struct Stored {
    pub(super) item: ItemV1,
    oid: Oid,
}

pub(super) fn read(remote: &dyn GitRemote) -> Result<Reading, ForgeError> {
    let refs = remote.refs(&[format!("{ITEMS}*"), "refs/heads/*".to_owned()])?;
    let number = |name: &RefName| name.as_str().strip_prefix(ITEMS)?.parse::<u64>().ok();
    Ok(Reading {
        items: refs.iter().filter_map(|(name, oid)| Some((number(name)?, *oid))).collect(),
        branches: refs.iter().filter_map(|(name, oid)| Some((name.as_branch()?, *oid))).collect(),
    })
}

impl Reading {
    pub(super) fn branch(&self, name: &BranchName) -> Option<Oid> {
        self.branches.get(name).copied()
    }

    pub(super) fn item(&self, remote: &dyn GitRemote, number: u64) -> Result<Stored, ForgeError> {
        self.items(remote, &[number])?.pop().ok_or(ForgeError::NotFound(number))
    }

    fn items(&self, remote: &dyn GitRemote, numbers: &[u64]) -> Result<Vec<Stored>, ForgeError> {
        let oid = |number: &u64| self.items.get(number).copied().ok_or(ForgeError::NotFound(*number));
        let wanted: Result<Vec<_>, ForgeError> = numbers.iter().map(|number| Ok((*number, oid(number)?))).collect();
        self.load(remote, &wanted?)?.into_iter().collect()
    }

    /// All items that can be read, by number. One that somebody damaged must not hide the others.
    pub(super) fn all(&self, remote: &dyn GitRemote) -> Result<Vec<ItemV1>, ForgeError> {
        let wanted: Vec<_> = self.items.iter().map(|(number, oid)| (*number, *oid)).collect();
        Ok(self.load(remote, &wanted)?.into_iter().filter_map(|stored| Some(stored.ok()?.item)).collect())
    }

    fn load(
        &self,
        remote: &dyn GitRemote,
        wanted: &[(u64, Oid)],
    ) -> Result<Vec<Result<Stored, ForgeError>>, ForgeError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = wanted.iter().map(|(number, oid)| (item_ref(*number), *oid)).collect();
        let blobs = remote.blobs(&names)?;
        let parsed = wanted.iter().zip(blobs).map(|((number, oid), bytes)| {
            let item = ItemV1::parse(&bytes, *number);
            let item = item.map_err(|reason| ForgeError::Damaged { number: *number, reason })?;
            Ok(Stored { item, oid: *oid })
        });
        Ok(parsed.collect())
    }
}

/// Stores new items under the lowest numbers that nobody else takes first.
pub(super) fn create(remote: &dyn GitRemote, mut items: Vec<ItemV1>) -> Result<Vec<ItemV1>, ForgeError> {
    for _ in 0..ATTEMPTS {
        let next = read(remote)?.items.keys().next_back().copied().unwrap_or(0) + 1;
        for (item, number) in items.iter_mut().zip(next..) {
            item.number = number;
        }
        let new: Vec<_> = items.iter().map(|item| (item, Expected::Absent)).collect();
        if put(remote, &new, &[])? == Put::Done {
            return Ok(items);
        }
    }
    Err(ForgeError::Busy)
}

/// Changes items as they are now, all of them together; whoever was faster is taken into account.
pub(super) fn change<T>(
    remote: &dyn GitRemote,
    numbers: &[u64],
    now: &str,
    mut edit: impl FnMut(&mut ItemV1, &Reading) -> Result<T, ForgeError>,
) -> Result<Vec<T>, ForgeError> {
    for _ in 0..ATTEMPTS {
        let reading = read(remote)?;
        let (mut answers, mut changed) = (Vec::new(), Vec::new());
        for stored in reading.items(remote, numbers)? {
            let mut item = stored.item.clone();
            answers.push(edit(&mut item, &reading)?);
            if item != stored.item {
                now.clone_into(&mut item.updated_at);
                changed.push((item, Expected::At(stored.oid)));
            }
        }
        let changed: Vec<_> = changed.iter().map(|(item, expected)| (item, *expected)).collect();
        if changed.is_empty() || put(remote, &changed, &[])? == Put::Done {
            return Ok(answers);
        }
    }
    Err(ForgeError::Busy)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// Somebody else changed the item, or one of the refs that go with it.
    Lost,
}

/// Replaces items, together with other refs, if all are as expected.
pub(super) fn put(
    remote: &dyn GitRemote,
    items: &[(&ItemV1, Expected)],
    with: &[RemoteUpdate],
) -> Result<Put, ForgeError> {
    let mut updates = with.to_vec();
    for (item, expected) in items {
        let to = Some(remote.write_blob(&item.render())?);
        updates.push(RemoteUpdate { name: item_ref(item.number), expected: *expected, to });
    }
    match remote.push(&updates)? {
        Pushed::Done => Ok(Put::Done),
        Pushed::Refused(refused) => {
            let rejected = refused.iter().find_map(|refused| match &refused.why {
                Refused::Rejected(reason) => Some(reason.clone()),
                Refused::Moved { .. } => None,
            });
            match rejected {
                // A remote that is busy with another push of the same ref refuses too; that one has moved it by now.
                Some(_) if is_moved(remote, &updates)? => Ok(Put::Lost),
                Some(reason) => Err(ForgeError::Rejected { reason }),
                None => Ok(Put::Lost),
            }
        }
    }
}

fn is_moved(remote: &dyn GitRemote, updates: &[RemoteUpdate]) -> Result<bool, ForgeError> {
    let names: Vec<_> = updates.iter().map(|update| update.name.to_string()).collect();
    let now = remote.refs(&names)?;
    Ok(updates.iter().any(|update| now.get(&update.name).copied() != update.expected.value()))
}

impl Stored {
    pub(super) fn expected(&self) -> Expected {
        Expected::At(self.oid)
    }
}

fn item_ref(number: u64) -> RefName {
    RefName::new(format!("{ITEMS}{number}")).expect("a number is a valid component")
}
