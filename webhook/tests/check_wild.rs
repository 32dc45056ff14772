//! Manifests as people write them, each with one slip: what `check` says first, and where.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, missing_docs, reason = "a test")]

use webhook::check::{Context, check_text};

const HEAD: &str = "containers: [{name: ray-head, image: 'rayproject/ray:2.53.0', resources: {limits: {cpu: '1', memory: 2Gi}}}]";

/// A RayCluster whose `headGroupSpec` and what follows it come from the table. `^` stands for a good head's containers.
fn cluster(rest: &str) -> String {
    format!("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {{name: wild}}\nspec:\n{}", rest.replace('^', HEAD))
}

#[test]
fn wild_manifests_get_the_word_that_helps() {
    let head = "  headGroupSpec: {template: {spec: {^}}}\n";
    let table: Vec<(&str, String, u32, &str, &str)> = vec![
        (
            "windows",
            cluster("  headGroupSpec:\n    template: {spec: {^}}\n    replicas: 1\n").replace('\n', "\r\n"),
            7,
            "spec.headGroupSpec.replicas",
            "exactly one head",
        ),
        ("byte order mark", format!("\u{feff}{}", cluster(&format!("{head}  bogus: 1\n"))), 6, "spec.bogus", "unknown field"),
        ("tabs", cluster("\theadGroupSpec: {}\n"), 5, "", "indent with spaces"),
        (
            "helm's output",
            format!(
                "---\n# Source: a/templates/b.yaml\n{}---\n# Source: a/templates/none.yaml\n",
                cluster("  headGroupSpec: {env: [], template: {spec: {^}}}\n")
            ),
            7,
            "spec.headGroupSpec.env",
            "template.spec.containers[].env",
        ),
        ("a template", cluster("  rayVersion: {{ .Values.version }}\n"), 5, "", "helm template"),
        (
            "merge keys",
            cluster("  headGroupSpec: &g {template: {spec: {^}}}\n  workerGroupSpecs:\n  - <<: *g\n    groupName: a\n    maxReplica: 1\n"),
            9,
            "spec.workerGroupSpecs[0].maxReplica",
            "did you mean maxReplicas?",
        ),
        (
            "a group's name",
            cluster(&format!("{head}  workerGroupSpecs: [{{name: a, template: {{spec: {{^}}}}}}]\n")),
            6,
            "spec.workerGroupSpecs[0].name",
            "did you mean groupName?",
        ),
        (
            "an image beside the template",
            cluster("  image: rayproject/ray\n  headGroupSpec: {template: {spec: {^}}}\n"),
            5,
            "spec.image",
            "spec.headGroupSpec.template.spec.containers[].image",
        ),
        (
            "amounts of a container",
            cluster("  headGroupSpec: {resources: {limits: {cpu: 1}}, template: {spec: {^}}}\n"),
            5,
            "spec.headGroupSpec.resources[limits]",
            "template.spec.containers[].resources",
        ),
        (
            "groups under the head",
            cluster("  headGroupSpec:\n    template: {spec: {^}}\n    workerGroupSpecs: []\n"),
            7,
            "spec.headGroupSpec.workerGroupSpecs",
            "it belongs in spec.workerGroupSpecs",
        ),
        (
            "a fraction",
            cluster(
                "  headGroupSpec: {template: {spec: {containers: [{name: h, image: 'rayproject/ray:2.53.0', resources: {limits: {cpu: 0.5}}}]}}}\n",
            ),
            5,
            "spec.headGroupSpec.template.spec.containers[0].resources.limits[cpu]",
            "\"500m\"",
        ),
        ("a version", cluster(&format!("  rayVersion: 2.10\n{head}")), 5, "spec.rayVersion", "put it in quotes: \"2.10\""),
        ("a switch in quotes", cluster(&format!("  suspend: \"false\"\n{head}")), 5, "spec.suspend", "leave out the quotes: false"),
        (
            "a key twice",
            cluster(&format!("  rayVersion: '2.52.0'\n{head}  rayVersion: '2.53.0'\n")),
            7,
            "spec.rayVersion",
            "the value in line 5 is lost",
        ),
        (
            "another object behind it",
            format!("{}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n", cluster(head)),
            6,
            "apiVersion",
            "put `---` between them",
        ),
        (
            "an object before it",
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{}", cluster(head)),
            4,
            "apiVersion",
            "put `---` between them",
        ),
        (
            "a list for a manifest",
            "- apiVersion: ray.io/v1\n  kind: RayCluster\n  metadata: {name: a}\n".to_owned(),
            1,
            "",
            "a list is no manifest",
        ),
        (
            "a list of lists",
            "apiVersion: v1\nkind: List\nitems:\n- kind: List\n  items:\n  - apiVersion: ray.io/v1\n    kind: Rayjob\n".to_owned(),
            7,
            "kind",
            "did you mean RayJob?",
        ),
        (
            "a batch job",
            "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec:\n  parallelism: 2\n".to_owned(),
            5,
            "spec.parallelism",
            "batch/v1 Job",
        ),
        ("a colon", "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  entrypoint: python a.py --a: b\n".to_owned(), 4, "", "in quotes"),
        (
            "an old field",
            "apiVersion: ray.io/v1\nkind: RayService\nmetadata: {name: a}\nspec:\n  serveConfig: {importPath: a}\n".to_owned(),
            5,
            "spec.serveConfig",
            "serveConfigV2",
        ),
        (
            "a variable",
            cluster(&format!("{head}  workerGroupSpecs: [{{groupName: a, replicas: '${{N}}', template: {{spec: {{^}}}}}}]\n")),
            6,
            "spec.workerGroupSpecs[0].replicas",
            "must be a whole number",
        ),
    ];
    for (what, text, line, path, words) in table {
        let file = check_text(&Context::default(), what, &text);
        let errors: Vec<_> = file.objects.iter().flat_map(|object| &object.errors).collect();
        let said = errors.iter().any(|error| (error.line, &*error.path) == (line, path) && error.message.contains(words));
        assert!(said, "{what}: line {line} {path} {words}, not {errors:#?}\n{text}");
    }
}

#[test]
fn what_is_nothing_is_not_counted() {
    for text in ["", "---\n---\n# a comment\n---\nnull\n...\n---\n~\n", "\u{feff}\n"] {
        let file = check_text(&Context::default(), "nothing", text);
        assert!(file.objects.is_empty() && file.skipped == 0, "{text:?}: {file:?}");
    }
}
