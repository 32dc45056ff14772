//! Finds the places of a kind that have a field of a given name.

use shared::schema::{Field, ValueType};
use shared::yaml::Step;

/// Deepest nesting that is searched; fields of volumes of volumes help nobody.
const MAX_DEPTH: usize = 12;
/// How far (up and down) a place may be from where the field was written.
const MAX_DISTANCE: usize = 7;
/// The same for names that many objects have.
const MAX_DISTANCE_OF_COMMON: usize = 1;
/// Names that say little about where they belong.
const COMMON: &[&str] = &[
    "name",
    "value",
    "key",
    "type",
    "spec",
    "path",
    "port",
    "mode",
    "items",
    "optional",
    "operator",
    "values",
    "effect",
    "data",
    "size",
    "kind",
    "apiVersion",
    "namespace",
    "status",
    "metadata",
    "host",
    "server",
    "secretName",
    "claimName",
];
/// Parts of an object that a user does not write, or seldom.
const SIDE: &[&str] = &["status", "ephemeralContainers", "initContainers", "volumes", "lifecycle", "affinity"];

/// Options of containers that the operator adds.
const ADDED: &[&str] = &["autoscalerOptions", "collectorOptions"];
/// What nearly always is meant for the user's own container.
const OF_CONTAINERS: &[&str] = &["image", "imagePullPolicy", "env", "envFrom", "resources", "volumeMounts", "securityContext"];
/// How much further away the options of an added container count for these.
const DETOUR: usize = 6;

/// One step down a schema.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part<'s> {
    Field(&'s str),
    Item,
    Entry,
}

/// Where a field of this name belongs that stands in the object at `parent`: the nearest place as a path, with the positions in
/// lists that the two have in common and `[]` for others.
pub(super) fn elsewhere(root: Field<'_>, parent: &[Step], name: &str) -> Option<String> {
    let mut search = Search { name, found: Vec::new() };
    search.walk(root, &mut Vec::new());
    let here = parts(root, parent);
    let most = if COMMON.contains(&name) { MAX_DISTANCE_OF_COMMON } else { MAX_DISTANCE };
    let shared = |place: &Vec<Part<'_>>| place.iter().zip(&here).take_while(|(one, other)| one == other).count();
    let distance = |place: &Vec<Part<'_>>| here.len() + place.len() - 2 * shared(place);
    let leads_through = |place: &Vec<Part<'_>>, names: &[&str]| {
        place.iter().skip(shared(place)).filter(|part| matches!(part, Part::Field(name) if names.contains(name))).count()
    };
    let detour = |place: &Vec<Part<'_>>| {
        let added = if OF_CONTAINERS.contains(&name) { leads_through(place, ADDED) } else { 0 };
        2 * leads_through(place, SIDE) + DETOUR * added
    };
    // Near, then on the main road, then down rather than up.
    let best = search
        .found
        .iter()
        .filter(|place| distance(place) <= most)
        .min_by_key(|place| (distance(place) + detour(place), here.len() - shared(place)))?;
    Some(shown(best, parent, shared(best), name))
}

struct Search<'s, 'n> {
    name: &'n str,
    found: Vec<Vec<Part<'s>>>,
}

impl<'s> Search<'s, '_> {
    fn walk(&mut self, field: Field<'s>, path: &mut Vec<Part<'s>>) {
        if path.len() >= MAX_DEPTH {
            return;
        }
        if field.property(self.name).is_some() {
            self.found.push(path.clone());
        }
        for (name, child) in field.properties() {
            if path.is_empty() && name == "status" {
                continue;
            }
            self.enter(Part::Field(name), child, path);
        }
        if let Some(items) = field.items() {
            self.enter(Part::Item, items, path);
        }
        if let Some(values) = field.values() {
            self.enter(Part::Entry, values, path);
        }
    }

    fn enter(&mut self, part: Part<'s>, field: Field<'s>, path: &mut Vec<Part<'s>>) {
        path.push(part);
        self.walk(field, path);
        path.pop();
    }
}

/// The way through the schema that a path of an object takes, as far as the schema goes.
fn parts<'s>(root: Field<'s>, steps: &'s [Step]) -> Vec<Part<'s>> {
    let mut field = root;
    let mut parts = Vec::new();
    for step in steps {
        let next = match step {
            Step::Index(_) if field.kind_of_value() == ValueType::Array => field.items().map(|items| (Part::Item, items)),
            Step::Key(name) => {
                field.property(name).map(|child| (Part::Field(name), child)).or_else(|| field.values().map(|child| (Part::Entry, child)))
            }
            Step::Index(_) => field.values().map(|child| (Part::Entry, child)),
        };
        let Some((part, child)) = next else { break };
        parts.push(part);
        field = child;
    }
    parts
}

fn shown(place: &[Part<'_>], here: &[Step], shared: usize, name: &str) -> String {
    let mut path = Step::join(here.get(..shared).unwrap_or_default());
    for part in place.iter().skip(shared) {
        match part {
            Part::Field(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Part::Item => path.push_str("[]"),
            Part::Entry => path.push_str("[…]"),
        }
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
    path
}

#[cfg(test)]
mod tests {
    use shared::schema::Schema;
    use shared::validation::Kind;

    use super::*;

    #[test]
    fn fields_are_found_where_they_belong() {
        let table = [
            (Kind::RayCluster, "spec.headGroupSpec", "serviceAccountName", Some("spec.headGroupSpec.template.spec.serviceAccountName")),
            (Kind::RayCluster, "spec.workerGroupSpecs[2].template", "volumes", Some("spec.workerGroupSpecs[2].template.spec.volumes")),
            (
                Kind::RayCluster,
                "spec.workerGroupSpecs[2].template",
                "nodeSelector",
                Some("spec.workerGroupSpecs[2].template.spec.nodeSelector"),
            ),
            (
                Kind::RayCluster,
                "spec.headGroupSpec.template.spec.containers[0]",
                "nodeSelector",
                Some("spec.headGroupSpec.template.spec.nodeSelector"),
            ),
            (Kind::RayCluster, "spec.headGroupSpec.template.spec", "image", Some("spec.headGroupSpec.template.spec.containers[].image")),
            (
                Kind::RayCluster,
                "spec.headGroupSpec.template.spec",
                "volumeMounts",
                Some("spec.headGroupSpec.template.spec.containers[].volumeMounts"),
            ),
            (
                Kind::RayCluster,
                "spec.headGroupSpec.template.spec.containers[0]",
                "limits",
                Some("spec.headGroupSpec.template.spec.containers[0].resources.limits"),
            ),
            (Kind::RayCluster, "spec.headGroupSpec.template", "rayStartParams", Some("spec.headGroupSpec.rayStartParams")),
            (Kind::RayCluster, "spec.headGroupSpec.template", "labels", Some("spec.headGroupSpec.template.metadata.labels")),
            (Kind::RayCluster, "spec.headGroupSpec", "image", Some("spec.headGroupSpec.template.spec.containers[].image")),
            (Kind::RayCluster, "spec.workerGroupSpecs[1]", "env", Some("spec.workerGroupSpecs[1].template.spec.containers[].env")),
            (Kind::RayCluster, "spec", "image", Some("spec.headGroupSpec.template.spec.containers[].image")),
            (Kind::RayCluster, "spec", "upscalingMode", Some("spec.autoscalerOptions.upscalingMode")),
            (Kind::RayCluster, "", "headGroupSpec", Some("spec.headGroupSpec")),
            (Kind::RayService, "spec.rayClusterConfig", "headService", Some("spec.rayClusterConfig.headGroupSpec.headService")),
            (Kind::RayService, "spec.rayClusterConfig", "serveConfigV2", Some("spec.serveConfigV2")),
            (Kind::RayJob, "spec", "workerGroupSpecs", Some("spec.rayClusterSpec.workerGroupSpecs")),
            (Kind::RayJob, "", "entrypoint", Some("spec.entrypoint")),
            (Kind::RayCronJob, "spec", "entrypoint", Some("spec.jobTemplate.entrypoint")),
            (Kind::RayCronJob, "spec", "rayClusterSpec", Some("spec.jobTemplate.rayClusterSpec")),
            (Kind::RayService, "spec", "entrypoint", None),
            (Kind::RayCluster, "spec", "secretName", Some("spec.authOptions.secretName")),
            (Kind::RayCluster, "spec", "claimName", None),
            (Kind::RayCluster, "spec", "nonsense", None),
        ];
        for (kind, parent, name, wanted) in table {
            let schema = Schema::of(kind, "v1").unwrap();
            assert_eq!(elsewhere(schema.root(), &Step::parse(parent), name).as_deref(), wanted, "{kind} {parent} {name}");
        }
    }
}
