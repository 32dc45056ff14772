use serde_json::{Value, json};

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    let schedule = |text: &str| cron(&json!({"schedule": text}));
    let zone = |name: Value| cron(&json!({"timeZone": name}));
    let mut cases = vec![
        cron(&json!({"schedule": null})).denied("V-CJ-3", "spec.schedule"),
        cron(&json!({"jobTemplate": null})).denied("V-CJ-6", "spec.jobTemplate"),
        cron(&json!({"jobTemplate": {"suspend": true}})).warned("W-CJ-4", "spec.jobTemplate.suspend"),
        cron(&json!({"jobTemplate": {"suspend": true, "shutdownAfterJobFinishes": false}})).denied("V-J-3", "spec.jobTemplate.suspend"),
        cron(&json!({"jobTemplate": {"submissionMode": "x"}})).denied("C-11", "spec.jobTemplate.submissionMode"),
        cron(&json!({"jobTemplate": {"jobId": "x", "rayClusterSpec": null, "clusterSelector": {"ray.io/cluster": "c"}}}))
            .warned("W-CJ-5", "spec.jobTemplate.jobId"),
        cron(&json!({"jobTemplate": {"jobId": "x"}})).not_warned("W-CJ-5"),
        cron(&json!({"jobTemplate": {"rayClusterSpec": {"headGroupSpec": {"headService": {"metadata": {"name": "h"}}}}}}))
            .warned("W-CJ-6", "spec.jobTemplate.rayClusterSpec.headGroupSpec.headService.metadata.name"),
        zone(json!(null)),
        zone(json!("")).denied("V-CJ-4", "spec.timeZone"),
        zone(json!("Local")).denied("C-17", "spec.timeZone"),
        cron(&json!({})).not_warned("W-CJ-1").not_warned("W-CJ-3"),
        cron(&json!({})).gates("").warned("W-CJ-1", "kind"),
        cron(&json!({"schedule": "@every 5m", "timeZone": "UTC"})).warned("W-CJ-2", "spec.timeZone"),
        cron(&json!({"schedule": "@daily", "timeZone": "UTC"})).not_warned("W-CJ-2"),
        cron(&json!({"jobTemplate": {"shutdownAfterJobFinishes": false}})).warned("W-CJ-3", "spec.jobTemplate.shutdownAfterJobFinishes"),
        cron(&json!({"jobTemplate": {"shutdownAfterJobFinishes": false, "clusterSelector": {"ray.io/cluster": "x"}}})).not_warned("W-CJ-3"),
    ];
    for text in ["* * * * *", "*/15 0-6 1,15 * mon-FRI", "@daily", "@every 1m", "@every 90s", "0 0 29 2 *", "0 0 31 4 mon"] {
        cases.push(schedule(text));
    }
    for text in [
        "0 1 * *",
        "0 0 1 * * *",
        "61 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "5-1 * * * *",
        "@reboot",
        "@every soon",
        "x * * * *",
        "*/0 * * * *",
    ] {
        cases.push(schedule(text).denied("V-CJ-3", "spec.schedule"));
    }
    for text in ["CRON_TZ=Asia/Tokyo 0 1 * * *", "TZ=UTC 0 1 * * *"] {
        cases.push(schedule(text).denied("V-CJ-2", "spec.schedule"));
    }
    for text in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "@every 59s", "@every 10s", "@every -1h"] {
        cases.push(schedule(text).denied("C-17", "spec.schedule"));
    }
    for name in ["Asia/Tokyo", "UTC", "Etc/GMT+5", "America/Argentina/Ushuaia"] {
        cases.push(zone(json!(name)));
    }
    for name in ["Mars/Base", "asia/tokyo", "utc", "Etc/Unknown", "../etc/passwd"] {
        cases.push(zone(json!(name)).denied("V-CJ-5", "spec.timeZone"));
    }
    cases
}
