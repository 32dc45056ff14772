//! `check` against the knowledge base: every admission case gets its verdict and paths, every sample of KubeRay is admitted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

#[path = "../../shared/tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use common::cases::{Answer, Header};
use common::{gated_samples, shared_directory, yaml_texts};
use shared::features::FeatureGates;
use webhook::check::{Checked, Context, check_text};

fn checked(header: &Header<'_>, text: &str) -> Checked {
    let mut context = Context::new(header.gates.parse::<FeatureGates>().unwrap());
    let (old, judged) = header.objects(text);
    if let Some(old) = old {
        context = context.with_stored(old).unwrap();
    }
    let mut file = check_text(&context, "case", judged);
    assert_eq!((file.objects.len(), file.skipped), (1, 0));
    file.objects.remove(0)
}

fn answer(checked: &Checked) -> Answer {
    let errors = checked.errors.iter().map(|error| error.path.clone()).collect();
    Answer { denied: !checked.allowed(), errors, warnings: checked.warnings.iter().map(|warning| warning.path.clone()).collect() }
}

#[test]
fn every_admission_case_gets_its_verdict_and_paths() {
    let Some(directory) = shared_directory("cases/admission") else { return };
    let cases = yaml_texts(&directory);
    assert!(cases.len() >= 100, "only {} cases found", cases.len());
    let complaints: BTreeMap<_, _> = cases
        .iter()
        .filter_map(|(name, text)| {
            let header = Header::parse(text);
            header.complaint(&answer(&checked(&header, text))).map(|complaint| (name, complaint))
        })
        .collect();
    assert!(complaints.is_empty(), "{} of {} cases: {complaints:#?}", complaints.len(), cases.len());
}

#[test]
fn every_error_of_an_admission_case_has_the_line_of_its_field() {
    let Some(directory) = shared_directory("cases/admission") else { return };
    for (name, text) in yaml_texts(&directory) {
        let header = Header::parse(&text);
        let (_, judged) = header.objects(&text);
        // A text that holds YAML is broken somewhere inside, which the line tells.
        for error in checked(&header, &text)
            .errors
            .into_iter()
            .filter(|error| !error.path.ends_with("serveConfigV2") && !error.path.ends_with("YAML"))
        {
            let line = judged.lines().nth(error.line as usize - 1).unwrap_or_else(|| panic!("{name}: {error:?}"));
            // The field itself, or a parent of it; a list element begins where its first key is.
            let named = error.path.split(['.', '[', ']']).filter(|step| !step.is_empty() && step.parse::<usize>().is_err());
            let in_line = named.into_iter().any(|step| line.contains(&format!("{step}:"))) || line.trim_start().starts_with("- ");
            assert!(in_line, "{name}: {} is not in line {}: {line}", error.path, error.line);
        }
    }
}

#[test]
fn every_sample_of_kuberay_is_admitted() {
    let Some(directory) = shared_directory("upstream/samples") else { return };
    let samples = yaml_texts(&directory);
    assert!(samples.len() >= 80, "only {} samples found", samples.len());
    let gated = gated_samples();
    let unknown: Vec<_> = gated.keys().filter(|name| !samples.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "docs/admission.md names samples that there are not: {unknown:?}");
    for (name, text) in &samples {
        let gate = gated.get(name);
        let denials = |gates: &str| -> Vec<String> {
            let file = check_text(&Context::new(gates.parse().unwrap()), name, text);
            assert!(!file.objects.is_empty(), "{name} has an object of ours");
            file.objects
                .iter()
                .flat_map(|object| &object.errors)
                .map(|error| format!("{}:{} {}", error.line, error.path, error.message))
                .collect()
        };
        let refused = denials("");
        match gate {
            None => assert_eq!(refused, [""; 0], "{name}"),
            Some(gate) => {
                assert!(!refused.is_empty() && refused.iter().all(|error| error.contains(gate.as_str())), "{name}: {refused:?}");
                assert_eq!(denials(&format!("{gate}=true")), [""; 0], "{name}");
            }
        }
    }
}
