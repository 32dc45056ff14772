//! The dashboard as the chart ships it.

use api_tests::chart::Rendered;
use api_tests::picture::{Body, Panel};
use serde_json::Value;

use super::prometheus::{Prometheus, Series};

/// What a dashboard's variables stand for here.
const VARIABLES: [(&str, &str); 3] = [("$__rate_interval", "5s"), ("$__range", "5m"), ("$namespace", ".*")];

pub(crate) struct Dashboard(Value);

/// A query of a panel.
pub(crate) struct Query {
    pub(crate) panel: String,
    pub(crate) expression: String,
    legend: String,
}

impl Dashboard {
    pub(crate) fn of(rendered: &Rendered) -> Self {
        let map = rendered.of_kind("ConfigMap").find(|map| map["metadata"]["labels"]["grafana_dashboard"] == "1").expect("a dashboard");
        Self(serde_json::from_str(map["data"]["kuberay.json"].as_str().expect("text")).expect("JSON"))
    }

    pub(crate) fn title(&self) -> &str {
        self.0["title"].as_str().expect("a title")
    }

    pub(crate) fn panels(&self) -> &[Value] {
        self.0["panels"].as_array().expect("panels")
    }

    pub(crate) fn queries(&self) -> Vec<Query> {
        self.panels().iter().flat_map(queries).collect()
    }

    /// The panels with what Prometheus knows of the last `seconds`.
    pub(crate) async fn filled(&self, prometheus: &Prometheus, seconds: f64) -> anyhow::Result<Vec<Panel>> {
        let mut all = Vec::new();
        for panel in self.panels() {
            let number = |key: &str| panel["gridPos"][key].as_f64().expect("a number");
            let mut series = Vec::new();
            for query in queries(panel) {
                let found = match panel["type"].as_str() {
                    Some("timeseries") => prometheus.lately(&query.expression, seconds).await?,
                    _ => prometheus.now(&query.expression).await?,
                };
                series.extend(found.into_iter().map(|series| (query.name(&series), series.points)));
            }
            let last = |(name, points): (String, Vec<(f64, f64)>)| (name, points.last().map_or(0.0, |(_, value)| *value));
            let body = match panel["type"].as_str() {
                Some("row") => Body::Heading,
                Some("timeseries") => Body::Lines(series),
                Some("bargauge") => Body::Bars(series.into_iter().map(last).collect()),
                Some("stat") => Body::Numbers(series.into_iter().map(last).collect()),
                other => panic!("a panel of type {other:?}"),
            };
            all.push(Panel {
                title: panel["title"].as_str().expect("a title").to_owned(),
                x: number("x"),
                y: number("y"),
                width: number("w"),
                height: number("h"),
                unit: panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default().to_owned(),
                body,
            });
        }
        Ok(all)
    }
}

fn queries(panel: &Value) -> Vec<Query> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let targets = panel["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
    targets
        .iter()
        .map(|target| Query {
            panel: text(&panel["title"]),
            expression: VARIABLES.iter().fold(text(&target["expr"]), |text, (variable, value)| text.replace(variable, value)),
            legend: text(&target["legendFormat"]),
        })
        .collect()
}

impl Query {
    /// The name of a series in the legend.
    fn name(&self, series: &Series) -> String {
        let labels = series.labels.as_object().into_iter().flatten();
        let named = labels.fold(self.legend.clone(), |name, (label, value)| {
            name.replace(&format!("{{{{{label}}}}}"), value.as_str().unwrap_or_default())
        });
        // Labels that a series does not have are empty.
        match named.split_once("{{") {
            Some((begin, rest)) => format!("{begin}{}", rest.split_once("}}").map_or("", |(_, end)| end)),
            None => named,
        }
    }
}
