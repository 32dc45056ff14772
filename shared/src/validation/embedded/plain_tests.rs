use proptest::prelude::*;

use super::*;
use crate::validation::{Findings, Path, Report, embedded};

fn fine_config(text: &str) -> bool {
    let mut applications = Applications::default();
    is_surely_fine(text, &mut applications) && applications.are_fine()
}

/// What the parser finds.
fn read(text: &str, reader: fn(&str, &Path<'_>, &mut Findings)) -> Report {
    let mut out = Findings::default();
    reader(text, &Path::root("x"), &mut out);
    out.report
}

#[test]
fn what_people_write_is_seen_at_a_glance() {
    let config = "# Serve\nproxy_location: EveryNode\nhttp_options: {host: 0.0.0.0, port: 8000}\napplications:\n  - name: fruit_app # the shop\n    \
                      import_path: fruit.deployment_graph\n    route_prefix: /fruit\n    runtime_env:\n      working_dir: \"https://x.example/a.zip\"\n    \
                      deployments:\n      - name: MangoStand\n        num_replicas: 2\n        user_config:\n          price: 3\n        ray_actor_options:\n          \
                      num_cpus: 0.1\n      - name: OrangeStand\n\n  - name: math_app\n    route_prefix: '/calc'\n    import_path: m:app\n";
    assert!(fine_config(config));
    assert!(fine_config(
        "applications:\n- name: a\n  args:\n  - x\n  - y\n  import_path: m:a\n  route_prefix: /a\n- name: b\n  route_prefix: /b\n  import_path: m.b\n"
    ));
    for env in [
        "pip: [requests==2.26.0, \"pendulum==2.1.2\"]\nenv_vars:\n  counter_name: \"test_counter\"\n",
        "env_vars: {A: \"1\", B: x}\nworking_dir: https://x.example/main.zip\n",
        "pip:\n  - polars>=1.0\n  - torch\n",
    ] {
        assert!(is_surely_fine(env, &mut AnyMapping), "{env}");
    }
}

#[test]
fn what_needs_a_closer_look_gets_it() {
    for text in [
        "",
        "# only words\n",
        "text",
        "- a",
        "a: [",
        "a: {",
        "a: 'b",
        "a: \"b\\n\"",
        "a: b: c",
        "a:\n  b",
        "a: b\n  c",
        "a: b\n  c: d",
        "a: 1\na: 2",
        "a: &x 1",
        "a: *x",
        "a: !t 1",
        "a: |\n  b",
        "a:\t1",
        "a: .nan",
        "a: 1e999",
        "y: 1\nyes: 2",
        "---\na: 1",
        "a: 1\n...",
        "a: é",
        " a: 1\nb: 2",
        "a:\n    b: 1\n  c: 2",
        "<<: 1",
        "? a",
        "a: [b,]",
        "a: - b",
        "a: @b",
        "a: b:",
    ] {
        assert!(!is_surely_fine(text, &mut AnyMapping), "{text:?}");
    }
    for text in [
        "a: 1",
        "applications:\n",
        "applications: []",
        "applications:\n- a\n",
        "applications:\n- name: a\n",
        "applications:\n- name: no\n  import_path: m:a\n",
        "applications:\n- {name: a, import_path: m:a}\n",
        "applications:\n  name: a\n",
        "applications:\n- import_path: m:a\n  name: a\n- import_path: m:a\n  name: b\n",
        "applications:\n- import_path: m:a\nrayClusterConfig:\n  x: y\n",
    ] {
        assert!(!fine_config(text), "{text:?}");
    }
    // One application, and what makes it worth a look.
    for rest in [
        "import_path: m",
        "name: ''",
        "route_prefix: a",
        "max_concurrent_queries: 1",
        "port: 8000",
        "runtime_env: {working_dir: ./x}",
        "runtime_env:\n    working_dir: ./x",
        "runtime_env:\n    py_modules: [x]",
        "deployments:\n  - num_replicas: 1",
        "deployments:\n  - name: d\n    num_replicas: 0",
        "deployments:\n  - name: d\n    num_replicas: '1'",
        "deployments:\n  - name: d\n    num_replicas: [1]",
        "deployments:\n  - name: d\n    num_replicas: 1\n    autoscaling_config:\n      max_replicas: 2",
    ] {
        let text = format!("applications:\n- import_path: m:a\n  {rest}\n");
        assert!(!fine_config(&text), "{text:?}");
    }
    assert!(fine_config(
        "applications:\n- import_path: m:a\n  deployments:\n  - name: d\n    num_replicas: auto\n    autoscaling_config:\n      max_replicas: 2\n"
    ));
}

/// Texts that are nearly, or quite, in the small part of YAML that is understood.
fn text() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(vec![
        "a",
        "b",
        "name",
        "route_prefix",
        "applications",
        "deployments",
        "import_path",
        "num_replicas",
        "autoscaling_config",
        "runtime_env",
        "working_dir",
        "host",
        "y",
        "no",
        "volumes",
        "smoothing_factor",
        "x.y",
        "a/b",
        "A-B",
        "1",
        "\"q\"",
        "k k",
    ]);
    let value = proptest::sample::select(vec![
        "",
        "x",
        "/a",
        "/b",
        "\"q\"",
        "'s'",
        "1",
        "-1",
        "0.5",
        "010",
        "1e9",
        "1e999",
        "null",
        "~",
        "yes",
        "[a, b]",
        "[a==1, b>=2~3]",
        "[a, >b]",
        "{k: ~}",
        "[a, \"b c\", 1]",
        "{k: v}",
        "{k: v, k: w}",
        "[",
        "{a",
        "[]",
        "{}",
        "- z",
        "a b",
        "a: b",
        "a #c",
        "#c",
        "a#b",
        "http://x",
        "m:a",
        "auto",
        "{working_dir: x}",
        "x:",
        "&r x",
        "*r",
        "|",
        ">-",
        "!t x",
        "\"a\\n\"",
        "'it''s'",
        "\"a\" b",
        "é",
        "\t",
        "{a: b: c}",
        "[a b]",
        "a,b",
        "=",
        "%",
        "@x",
        "`x",
        "2024-01-01",
        "12:30",
        "0x1f",
        ".inf",
        "[.nan]",
        "{y: 1}",
        "[a]  # c",
        "\"a\"#c",
        "x  ",
    ]);
    let line = (0..4_usize, prop_oneof![Just(""), Just("- "), Just("-  "), Just("- - ")], proptest::option::of(key), value, 0..20_u8)
        .prop_map(|(indent, dash, key, value, odd)| {
            let pad = "  ".repeat(indent);
            match (odd, key) {
                (0, _) => format!("{pad}{value}"),
                (1, _) => format!("{pad} {dash}{value}"),
                (2, _) => "---".to_owned(),
                (3, _) => format!("{pad}# {value}"),
                (4, _) => String::new(),
                (_, Some(key)) if value.is_empty() => format!("{pad}{dash}{key}:"),
                (_, Some(key)) => format!("{pad}{dash}{key}: {value}"),
                (_, None) => format!("{pad}{dash}{value}"),
            }
        });
    // Random lines are rarely in order: most texts begin with some that are.
    let start = proptest::sample::select(vec![
        "",
        "applications:\n",
        "applications:\n- name: x\n  import_path: m:x\n",
        "applications:\n- name: x\n  import_path: m:x\n  a:\n",
        "applications:\n- import_path: m:x\n  deployments:\n  - name: d\n",
        "a:\n",
        "a: 1\n",
    ]);
    (start, proptest::collection::vec(line, 0..7), any::<bool>())
        .prop_map(|(start, lines, end)| format!("{start}{}{}", lines.join("\n"), if end { "\n" } else { "" }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parser_finds_nothing_where_the_glance_found_nothing(text in text()) {
        if fine_config(&text) {
            prop_assert_eq!(read(&text, embedded::read_serve_config), Report::default(), "{}", text);
        }
        if is_surely_fine(&text, &mut AnyMapping) {
            prop_assert_eq!(read(&text, embedded::read_runtime_env), Report::default(), "{}", text);
        }
    }

    #[test]
    fn any_text_is_looked_at_without_panic(text in "\\PC{0,60}|[ a:#\\-\\[\\]{},\"'\n]{0,40}") {
        if is_surely_fine(&text, &mut AnyMapping) {
            prop_assert_eq!(read(&text, embedded::read_runtime_env), Report::default(), "{}", text);
        }
        let _ = fine_config(&text);
    }
}
