//! The RayCronJob kind (V-CJ-2..V-CJ-6, C-17).

use super::{
    Findings, Path, Subject, advice, job,
    json::{Json, Shown},
};
use crate::cron::{self, Schedule, ZoneError};

pub(super) fn examine(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    examine_schedule(subject, &path.field("schedule"), out);
    examine_zone(subject, &path.field("timeZone"), out);
    let template = subject.spec.at("jobTemplate");
    let template_path = path.field("jobTemplate");
    if !template.is_set() {
        return out.required(&template_path, "V-CJ-6", "there is nothing to run: describe the RayJob here (its spec, without metadata)");
    }
    job::examine_spec(subject, template, &template_path, out);
    advice::examine_cronjob(subject, path, out);
}

fn examine_schedule(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let Some(text) = subject.spec.at("schedule").filled() else {
        return out.required(
            path,
            "V-CJ-3",
            "there is no schedule: write five fields (minute hour day month weekday) like \"30 4 * * mon-fri\", or \"@daily\"",
        );
    };
    if text.contains("TZ") {
        return out.invalid(path, "V-CJ-2", format!("{}: the time zone has a field of its own: move it to timeZone", Shown(text)));
    }
    match Schedule::parse(text) {
        Err(error) => out.invalid(path, "V-CJ-3", format!("{}: {error}", Shown(text))),
        Ok(Schedule::Every { seconds }) if seconds < 60 => out.invalid(
            path,
            "C-17",
            format!(
                "{}: the runs of one minute would share one name, so only the first would start: use at least \"@every 1m\"",
                Shown(text)
            ),
        ),
        Ok(schedule) if !schedule.ever_fires() => {
            out.invalid(
                path,
                "C-17",
                format!("{}: no month has that day, so it would never run: correct the day or the month", Shown(text)),
            );
        }
        Ok(_) => {}
    }
}

fn examine_zone(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let zone = subject.spec.at("timeZone");
    let Some(name) = zone.text() else { return };
    let remedy = "use a name of the IANA time zone database like \"Europe/Rome\" or \"UTC\"";
    match cron::zone(name) {
        Ok(_) => {}
        Err(ZoneError::Empty) => out.invalid(path, "V-CJ-4", format!("the name is empty: {remedy}, or leave it out")),
        Err(ZoneError::Local) => out.invalid(path, "C-17", format!("\"Local\" depends on where the operator happens to run: {remedy}")),
        Err(ZoneError::Unknown) => {
            out.invalid(path, "V-CJ-5", format!("there is no time zone {} (upper and lower case count): {remedy}", Shown(name)));
        }
    }
}
