//! The content of a cache and how events change it. No I/O, no waiting.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::{BuildHasher as _, Hash, RandomState},
    sync::Arc,
};

use super::{Kept, ObjectKey};

/// Part of the cluster that one watch looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All namespaces.
    Cluster,
    /// One namespace.
    Namespace(Box<str>),
}

impl Scope {
    fn covers(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Cluster => true,
            Self::Namespace(namespace) => *namespace == key.namespace,
        }
    }
}

/// What an event changed.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// An object is new, or says something new.
    Set {
        /// Its version before, if it was known.
        old: Option<Arc<T>>,
        /// Its version now.
        new: Arc<T>,
    },
    /// An object is gone.
    Gone {
        /// The last version that was known.
        old: Arc<T>,
    },
}

impl<T> Change<T> {
    /// The newest version that is known of the object.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Set { new, .. } => new,
            Self::Gone { old } => old,
        }
    }
}

struct Entry<T> {
    object: Arc<T>,
    /// Number of the newest list that had begun when this entry was last touched.
    touched: u64,
    /// Fingerprint of the wanted object that this version was found to be as.
    verified: Option<u64>,
    /// Whether a watch has told of this object, rather than the answer to an own write.
    told: bool,
}

/// What the end of a list brings.
pub(in crate::runtime) struct ListEnd<T> {
    /// Objects that are gone.
    pub(in crate::runtime) gone: Vec<Change<T>>,
    /// Objects that are known from own writes alone, and that the list did not name. Either they are newer than the list (which the
    /// API server may serve from a cache that lags behind), and the watch will tell of them, or they were deleted before the list
    /// was made, and nobody will ever tell.
    pub(in crate::runtime) doubtful: Vec<Arc<T>>,
}

/// How many uids and names of objects that are gone are remembered. Only those of the last moments matter: uids because the answer to
/// an own create may arrive after the watch has told of the object's deletion, names because a new object should not be taken for one
/// that is gone.
const TOMBSTONES: usize = 8192;

pub(super) struct State<T> {
    objects: HashMap<ObjectKey, Entry<T>>,
    groups: HashMap<ObjectKey, BTreeMap<Box<str>, Arc<T>>>,
    index: fn(&T) -> Option<&str>,
    /// Counts the lists that have begun.
    lists: u64,
    /// Number of the list that a scope is in, or was in last.
    current: HashMap<Scope, u64>,
    /// Scopes that have not been listed yet.
    missing: HashSet<Scope>,
    hasher: RandomState,
    tombstones: HashSet<u64>,
    tombstone_order: VecDeque<u64>,
}

impl<T: Kept> State<T> {
    pub(super) fn new(index: fn(&T) -> Option<&str>, scopes: &[Scope]) -> Self {
        Self {
            objects: HashMap::new(),
            groups: HashMap::new(),
            index,
            lists: 0,
            current: HashMap::new(),
            missing: scopes.iter().cloned().collect(),
            hasher: RandomState::new(),
            tombstones: HashSet::new(),
            tombstone_order: VecDeque::new(),
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.objects.get(key).map(|entry| Arc::clone(&entry.object))
    }

    pub(super) fn in_group(&self, group: &ObjectKey) -> Vec<Arc<T>> {
        self.groups.get(group).map(|members| members.values().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.objects.values().map(|entry| Arc::clone(&entry.object)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    pub(super) fn list_begins(&mut self, scope: &Scope) {
        self.lists += 1;
        self.current.insert(scope.clone(), self.lists);
    }

    pub(super) fn list_ends(&mut self, scope: &Scope) -> ListEnd<T> {
        self.missing.remove(scope);
        let list = self.current.get(scope).copied().unwrap_or_default();
        let in_scope = || self.objects.iter().filter(|(key, _)| scope.covers(key));
        let doubtful = in_scope().filter(|(_, entry)| !entry.told).map(|(_, entry)| Arc::clone(&entry.object)).collect();
        let unseen = in_scope().filter(|(_, entry)| entry.told && entry.touched < list).map(|(key, _)| key.clone());
        let unseen: Vec<ObjectKey> = unseen.collect();
        let gone = unseen.iter().filter_map(|key| self.remove(key)).map(|old| Change::Gone { old }).collect();
        ListEnd { gone, doubtful }
    }

    pub(super) fn applied(&mut self, object: T) -> Option<Change<T>> {
        let key = ObjectKey::of(&object);
        if self.is_overtaken(&key, &object) {
            self.told(&key, &object);
            return None;
        }
        self.set(key, object, true)
    }

    /// Stores the answer to an own write unless something newer is known. Returns what is known now, and what changed by it.
    pub(super) fn observe(&mut self, object: T) -> (Arc<T>, Option<Change<T>>) {
        let key = ObjectKey::of(&object);
        let deleted = object.meta().uid.as_deref().is_some_and(|uid| self.tombstones.contains(&self.hasher.hash_one(uid)));
        if deleted || self.is_overtaken(&key, &object) {
            return (self.get(&key).unwrap_or_else(|| Arc::new(object)), None);
        }
        let object = Arc::new(object);
        let old = self.store(key, Arc::clone(&object), false);
        (Arc::clone(&object), changed(old, object))
    }

    /// Whether an object of this uid is known only from an own write.
    pub(super) fn is_untold(&self, key: &ObjectKey, uid: &str) -> bool {
        self.objects.get(key).is_some_and(|entry| !entry.told && entry.object.meta().uid.as_deref() == Some(uid))
    }

    pub(super) fn forget(&mut self, key: &ObjectKey, uid: &str) {
        if self.get(key).is_some_and(|known| known.meta().uid.as_deref() == Some(uid)) {
            self.remove(key);
        }
    }

    pub(super) fn set_verified(&mut self, object: &T, fingerprint: u64) {
        if let Some(entry) = self.objects.get_mut(&ObjectKey::of(object)).filter(|entry| is_same_version(&*entry.object, object)) {
            entry.verified = Some(fingerprint);
        }
    }

    pub(super) fn verified(&self, object: &T) -> Option<u64> {
        self.objects.get(&ObjectKey::of(object)).filter(|entry| is_same_version(&*entry.object, object))?.verified
    }

    /// A list may be older than what the watch or an own write told while it was on its way; anything else it says is right, even
    /// if its versions have gone back because the cluster was restored from a backup.
    pub(super) fn listed(&mut self, scope: &Scope, object: T) -> Option<Change<T>> {
        let key = ObjectKey::of(&object);
        let list = self.current.get(scope).copied().unwrap_or_default();
        let touched_since = self.objects.get(&key).is_some_and(|entry| entry.touched >= list);
        if touched_since && self.is_overtaken(&key, &object) {
            self.told(&key, &object);
            return None;
        }
        self.set(key, object, true)
    }

    /// A watch has told of an older version of the object, so it will tell of its end, too.
    fn told(&mut self, key: &ObjectKey, object: &T) {
        if let Some(entry) = self.objects.get_mut(key).filter(|entry| entry.object.meta().uid == object.meta().uid) {
            entry.told = true;
        }
    }

    pub(super) fn deleted(&mut self, object: &T) -> Option<Change<T>> {
        let key = ObjectKey::of(object);
        let uid = object.meta().uid.as_deref();
        if let Some(uid) = uid {
            self.bury(uid);
        }
        // A successor of the same name, which an own create has already stored, stays.
        let known = self.objects.get(&key)?;
        if known.object.meta().uid.as_deref() == uid { self.remove(&key).map(|old| Change::Gone { old }) } else { None }
    }

    /// Whether something newer than `object` is known.
    fn is_overtaken(&self, key: &ObjectKey, object: &T) -> bool {
        match (self.objects.get(key).and_then(|entry| version(&*entry.object)), version(object)) {
            (Some(known), Some(new)) => new < known,
            _ => false,
        }
    }

    fn set(&mut self, key: ObjectKey, object: T, told: bool) -> Option<Change<T>> {
        let new = Arc::new(object);
        let old = self.store(key, Arc::clone(&new), told);
        changed(old, new)
    }

    fn store(&mut self, key: ObjectKey, object: Arc<T>, told: bool) -> Option<Arc<T>> {
        let before = self.objects.get(&key).filter(|entry| entry.object.meta().uid == object.meta().uid);
        let told = told || before.is_some_and(|entry| entry.told);
        let verified = before.filter(|entry| is_same_version(&*entry.object, &*object)).and_then(|entry| entry.verified);
        let old = self.objects.get(&key).map(|entry| Arc::clone(&entry.object));
        if let Some(old) = &old
            && (self.index)(old) != (self.index)(&object)
        {
            self.leave_group(&key, old);
        }
        if let Some(group) = (self.index)(&object) {
            let group = ObjectKey::new(key.namespace.clone(), group);
            self.groups.entry(group).or_default().insert(key.name.clone(), Arc::clone(&object));
        }
        self.objects.insert(key, Entry { object, touched: self.lists, verified, told });
        old
    }

    /// Whether an object of this name was here and is gone since a moment ago.
    pub(super) fn is_gone_lately(&self, key: &ObjectKey) -> bool {
        self.tombstones.contains(&self.hasher.hash_one(key))
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<T>> {
        let entry = self.objects.remove(key)?;
        self.bury(key);
        self.leave_group(key, &entry.object);
        Some(entry.object)
    }

    fn leave_group(&mut self, key: &ObjectKey, object: &T) {
        let Some(group) = (self.index)(object) else { return };
        let group = ObjectKey::new(key.namespace.clone(), group);
        if let Some(members) = self.groups.get_mut(&group) {
            members.remove(&key.name);
            if members.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// Remembers a uid or a name.
    fn bury(&mut self, gone: impl Hash) {
        let gone = self.hasher.hash_one(gone);
        if self.tombstones.insert(gone) {
            self.tombstone_order.push_back(gone);
            if self.tombstone_order.len() > TOMBSTONES
                && let Some(oldest) = self.tombstone_order.pop_front()
            {
                self.tombstones.remove(&oldest);
            }
        }
    }
}

fn changed<T: Kept>(old: Option<Arc<T>>, new: Arc<T>) -> Option<Change<T>> {
    if old.as_ref().is_some_and(|old| !new.differs(old)) { None } else { Some(Change::Set { old, new }) }
}

/// Resource versions of one kind grow with time and can be compared as numbers (Kubernetes says so since 1.35, and it has always
/// held for etcd). One that is no number is never taken for older.
fn version(object: &impl kube::Resource) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

fn is_same_version(one: &impl kube::Resource, other: &impl kube::Resource) -> bool {
    let (one, other) = (one.meta(), other.meta());
    one.uid == other.uid && one.resource_version == other.resource_version
}
