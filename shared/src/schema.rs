//! What the API server does with an object before any webhook rule: unknown fields, nulls, defaults, types and bounds.
//!
//! A [`Schema`] is compiled once per kind and version from our own CustomResourceDefinitions into a flat tree; walking an object
//! then neither clones nor builds text unless there is something to report. The order of the API server is kept by the caller:
//! [`Schema::settle`] (unknown fields, nulls, defaults) → mutation → [`Schema::check`] (schema, CEL) and [`metadata::check`].

mod check;
mod compile;
pub mod metadata;
mod settle;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

pub use check::{NoRules, RuleEngine};
pub use compile::Unsupported;
pub use settle::UnknownField;

use crate::{
    crd,
    validation::{Kind, Path},
};

/// The compiled schema of one kind in one version.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Node>,
    patterns: Vec<Pattern>,
    unsupported: Vec<Unsupported>,
}

impl Schema {
    /// The schema of a kind as our CustomResourceDefinition has it. Compiled on first use, then shared. `None` for a version that the
    /// kind is not served in.
    #[must_use]
    pub fn of(kind: Kind, version: &str) -> Option<&'static Schema> {
        match (kind, version) {
            (Kind::RayCluster, "v1") => RAY_CLUSTER.as_ref(),
            (Kind::RayJob, "v1") => RAY_JOB.as_ref(),
            (Kind::RayService, "v1") => RAY_SERVICE.as_ref(),
            (Kind::RayCronJob, "v1") => RAY_CRON_JOB.as_ref(),
            (Kind::RayCluster, "v1alpha1") => RAY_CLUSTER_ALPHA.as_ref(),
            (Kind::RayJob, "v1alpha1") => RAY_JOB_ALPHA.as_ref(),
            (Kind::RayService, "v1alpha1") => RAY_SERVICE_ALPHA.as_ref(),
            _ => None,
        }
    }

    /// The whole object.
    #[must_use]
    pub fn root(&self) -> Field<'_> {
        Field { schema: self, id: ROOT }
    }

    /// Keywords of the source that have no effect here; empty for our own definitions.
    #[must_use]
    pub fn unsupported(&self) -> &[Unsupported] {
        &self.unsupported
    }

    fn node(&self, id: NodeId) -> &Node {
        // Ids are made by the compiler for nodes it stores; the root stands for one that could not exist.
        self.nodes.get(id.0 as usize).unwrap_or(&OPEN)
    }
}

macro_rules! served {
    ($($name:ident = $kind:ident in $version:literal,)+) => {
        $(static $name: LazyLock<Option<Schema>> =
            LazyLock::new(|| crd::schema_of(Kind::$kind.as_str(), $version).map(with_metadata).map(|source| Schema::compile(&source)));)+
    };
}

served! {
    RAY_CLUSTER = RayCluster in "v1",
    RAY_JOB = RayJob in "v1",
    RAY_SERVICE = RayService in "v1",
    RAY_CRON_JOB = RayCronJob in "v1",
    RAY_CLUSTER_ALPHA = RayCluster in "v1alpha1",
    RAY_JOB_ALPHA = RayJob in "v1alpha1",
    RAY_SERVICE_ALPHA = RayService in "v1alpha1",
}

/// A definition leaves `metadata` to the API server.
fn with_metadata(mut source: Value) -> Value {
    if let Some(place) = source.pointer_mut("/properties/metadata") {
        *place = metadata::schema();
    }
    source
}

/// The field `name` of the object at `parent`, or of the whole object.
fn below<'p>(parent: Option<&'p Path<'p>>, name: &'p str) -> Path<'p> {
    parent.map_or(Path::root(name), |parent| parent.field(name))
}

/// A place in a schema: a field, the items of a list, or the values of a map.
#[derive(Clone, Copy, Debug)]
pub struct Field<'s> {
    schema: &'s Schema,
    id: NodeId,
}

impl<'s> Field<'s> {
    /// The named field of an object with fixed fields.
    #[must_use]
    pub fn property(self, name: &str) -> Option<Field<'s>> {
        self.node().property(name).map(|id| self.at(id))
    }

    /// All fields of an object with fixed fields, by name.
    pub fn properties(self) -> impl Iterator<Item = (&'s str, Field<'s>)> {
        self.node().properties.iter().map(move |(name, id)| (&**name, self.at(*id)))
    }

    /// The elements of a list.
    #[must_use]
    pub fn items(self) -> Option<Field<'s>> {
        self.node().items.map(|id| self.at(id))
    }

    /// The values of a map with free keys.
    #[must_use]
    pub fn values(self) -> Option<Field<'s>> {
        self.node().values.map(|id| self.at(id))
    }

    /// The type of the value.
    #[must_use]
    pub fn kind_of_value(self) -> ValueType {
        self.node().value_type
    }

    /// Whether fields without a description in the schema are kept.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.node().open
    }

    /// Whether the field cannot be left out.
    #[must_use]
    pub fn requires(self, name: &str) -> bool {
        self.node().required.iter().any(|required| &**required == name)
    }

    fn node(self) -> &'s Node {
        self.schema.node(self.id)
    }

    fn at(self, id: NodeId) -> Field<'s> {
        Field { schema: self.schema, id }
    }
}

/// What a field may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ValueType {
    /// Fields or entries.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Text or a whole number: ports, quantities.
    IntOrString,
    /// Anything.
    #[default]
    Any,
}

impl ValueType {
    /// The type in words, for messages.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Object => "a mapping",
            Self::Array => "a list",
            Self::String => "a string",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::IntOrString => "a string or a whole number",
            Self::Any => "any value",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeId(u32);

const ROOT: NodeId = NodeId(0);

static OPEN: Node = Node::open();

#[derive(Debug)]
struct Node {
    value_type: ValueType,
    nullable: bool,
    /// Unknown fields are kept.
    open: bool,
    /// `format: int32`.
    int32: bool,
    /// `format: date-time`.
    date_time: bool,
    /// Sorted by name.
    properties: Vec<(Box<str>, NodeId)>,
    required: Vec<Box<str>>,
    items: Option<NodeId>,
    values: Option<NodeId>,
    /// Values of properties that are filled in.
    defaults: Vec<(Box<str>, Value)>,
    allowed: Vec<Value>,
    list: ListType,
    bounds: Option<Box<Bounds>>,
    pattern: Option<u32>,
    rules: Vec<Rule>,
}

impl Node {
    const fn open() -> Self {
        Node {
            value_type: ValueType::Any,
            nullable: true,
            open: true,
            int32: false,
            date_time: false,
            properties: Vec::new(),
            required: Vec::new(),
            items: None,
            values: None,
            defaults: Vec::new(),
            allowed: Vec::new(),
            list: ListType::Atomic,
            bounds: None,
            pattern: None,
            rules: Vec::new(),
        }
    }

    fn property(&self, name: &str) -> Option<NodeId> {
        let at = self.properties.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.properties.get(at).map(|(_, id)| *id)
    }
}

/// Which elements of a list must differ.
#[derive(Debug, PartialEq)]
enum ListType {
    Atomic,
    /// All of them.
    Set,
    /// In these fields taken together.
    Map(Vec<Box<str>>),
}

#[derive(Debug, Default)]
struct Bounds {
    minimum: Option<f64>,
    above: bool,
    maximum: Option<f64>,
    below: bool,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    min_properties: Option<usize>,
    max_properties: Option<usize>,
}

/// A rule in the Common Expression Language, as it stands in `x-kubernetes-validations`.
#[derive(Debug)]
pub struct Rule {
    /// The expression over `self` and, in transition rules, `oldSelf`.
    pub expression: Box<str>,
    /// What the API server says when it is false.
    pub message: Box<str>,
    /// An expression that gives the message instead.
    pub message_expression: Option<Box<str>>,
    /// Whether it compares with the stored object, so that it only holds for an UPDATE.
    pub transition: bool,
    reason: crate::validation::ErrorType,
    field_path: Box<str>,
}

/// Compiled when a value first meets it; most are never met.
#[derive(Debug)]
struct Pattern {
    text: Box<str>,
    regex: std::sync::OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Whether this is the pattern that Kubernetes gives quantities.
    fn is_quantity(&self) -> bool {
        self.text.contains("[KMGTPE]i")
    }

    /// Whether a text has the pattern. One that is no regular expression stops nobody.
    fn matches(&self, text: &str) -> bool {
        self.regex.get_or_init(|| Regex::new(&self.text).ok()).as_ref().is_none_or(|regex| regex.is_match(text))
    }
}
