//! Heads that go and come while their jobs run (C-59), and the times of ends that nobody saw (RJ-71).

use serde_json::json;

use super::*;

/// The head is gone, and what is known of the cluster says so.
fn head_goes(world: &mut World) {
    world.seen.head = None;
    world.set_cluster(|cluster| cluster.status.as_mut().unwrap().head.pod_name.clear());
}

/// Another head runs in its place.
fn head_comes(world: &mut World, ready: bool, name: &str) {
    world.head_that_is(ready, name, json!({}));
    world.set_cluster(|cluster| cluster.status.as_mut().unwrap().head.pod_name = name.into());
}

#[test]
fn c_59_a_new_head_that_does_not_know_the_job_is_a_lost_job() {
    for mode in ["K8sJobMode", "HTTPMode"] {
        let mut world = World::in_ray(mode, json!({}));
        // What Ray said before counts until it was asked again, and is not taken for the word of the new head.
        head_goes(&mut world);
        let plan = world.look();
        assert_eq!((world.state(), plan.inquiry.unwrap().occasion), (State::Running, Occasion::HeadGone), "{mode}");
        // A head that is no longer there answers, since it has not quite ended.
        world.says("RUNNING");
        world.look();
        head_comes(&mut world, false, "head-2");
        assert_eq!(world.look().inquiry.unwrap().occasion, Occasion::HeadReplaced, "{mode}");
        world.says("RUNNING");
        world.look();
        assert_eq!(world.status().ray_cluster_status.head.pod_name, "head-1", "{mode}");
        world.replies(Reply::NotFound);
        let plan = world.look();
        assert_eq!(world.summary(), "Failed/AppFailed/FAILED", "{mode}");
        let status = world.status();
        assert!(status.message.contains("head-1") && status.message.contains("head-2"), "{}", status.message);
        assert_eq!((status.failed, status.end_time.unwrap().0), (Some(1), world.now), "{mode}");
        assert_eq!(plan.ended.unwrap().status, State::Failed, "{mode}");
        assert_eq!(world.condition("Running"), Some(("False".into(), "FAILED".into())), "{mode}");
        assert_eq!(world.told("Failed"), 1, "{mode}");
    }
}

#[test]
fn c_59_a_new_head_that_does_not_answer_is_a_lost_job_at_once() {
    let mut world = World::in_ray("K8sJobMode", json!({"backoffLimit": 1}));
    let first = world.status();
    head_goes(&mut world);
    world.look();
    world.silence();
    world.look();
    assert_eq!(world.state(), State::Running, "without a head there is nobody to ask");
    head_comes(&mut world, false, "head-2");
    world.look();
    assert_eq!((world.summary().as_str(), world.status().failed), ("Retrying/AppFailed/FAILED", Some(1)));
    // Nothing is left to be stopped.
    assert_eq!(actions(&world.look()), ["DeleteCluster", "DeleteSubmitter"]);
    world.look();
    let second = world.status();
    assert_eq!(world.summary(), "Initializing//");
    assert!(second.job_id != first.job_id && second.ray_cluster_name != first.ray_cluster_name);
}

#[test]
fn c_59_a_head_that_stays_away_ends_with_the_status_check() {
    let mut world = World::in_ray("K8sJobMode", json!({}));
    head_goes(&mut world);
    world.look();
    world.silence();
    world.look();
    world.after(299).look();
    assert_eq!(world.state(), State::Running);
    world.after(1).look();
    assert_eq!(world.summary(), "Failed/JobStatusCheckTimeoutExceeded/RUNNING");
}

#[test]
fn c_59_a_head_that_was_started_anew_in_its_pod() {
    let mut world = World::in_ray("K8sJobMode", json!({}));
    world.silence();
    world.look();
    world.after(20).replies(Reply::NotFound);
    world.look();
    assert_eq!(world.state(), State::Running, "one answer may be a mistake");
    world.after(5).look();
    assert_eq!(world.summary(), "Failed/AppFailed/FAILED");
}

#[test]
fn c_59_as_long_as_ray_knows_the_job_ray_decides() {
    let tolerant = json!({"rayClusterSpec": {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}});
    for (spec, answers) in [(json!({}), true), (tolerant, false)] {
        let mut world = World::in_ray("K8sJobMode", spec);
        head_goes(&mut world);
        world.look();
        head_comes(&mut world, true, "head-2");
        world.look();
        if !answers {
            // With its state in Redis a head may take its time.
            world.silence();
            world.after(200).look();
            assert_eq!(world.state(), State::Running);
        }
        world.says("RUNNING");
        world.look();
        assert_eq!((world.summary().as_str(), world.status().ray_cluster_status.head.pod_name.as_str()), ("Running//RUNNING", "head-2"));
        assert_eq!(world.look().inquiry.unwrap().occasion, Occasion::Routine);
        world.says("SUCCEEDED");
        world.submitter_ends(true);
        world.look();
        assert_eq!(world.summary(), "Complete//SUCCEEDED");
    }
}

#[test]
fn c_59_a_lost_job_that_a_submitter_hands_over_again_is_stopped() {
    let mut world = World::in_ray("K8sJobMode", json!({}));
    head_goes(&mut world);
    head_comes(&mut world, false, "head-2");
    world.look();
    world.silence();
    world.look();
    assert_eq!(world.summary(), "Failed/AppFailed/FAILED");
    let plan = world.look();
    assert_eq!((actions(&plan), plan.inquiry.unwrap().purpose), (vec![], Purpose::Stop), "its logs stay");
    world.replies(Reply::StopSent);
    world.look();
    world.says("STOPPED");
    let plan = world.look();
    assert_eq!((world.summary().as_str(), plan.inquiry), ("Failed/AppFailed/FAILED", None));
    // There is nothing to guard against once the submitter has ended.
    world.seen.answer = None;
    world.submitter_ends(true);
    assert_eq!(world.look().inquiry, None);
}

#[test]
fn rj_71_a_job_ended_when_ray_ended_it_however_long_nobody_looked() {
    let ended = |mode: &str, submitter_lag: Option<i64>, away: i64| {
        let mut world = World::in_ray(mode, json!({}));
        world.after(40).says("SUCCEEDED");
        if let Some(lag) = submitter_lag {
            world.after(lag).submitter_ends(true);
        }
        let plan = world.after(away).look();
        assert_eq!(world.summary(), "Complete//SUCCEEDED");
        let status = world.status();
        let start: Timestamp = START.parse().unwrap();
        assert_eq!(status.ray_job_info.end_time.unwrap().0.duration_since(start), SignedDuration::from_secs(40));
        let took = status.end_time.unwrap().0.duration_since(start);
        assert_eq!(plan.ended.unwrap().took, took);
        took.as_secs()
    };
    assert_eq!(ended("HTTPMode", None, 3600), 40);
    assert_eq!(ended("K8sJobMode", Some(5), 3600), 45, "the submitter showed the rest of the logs");
    assert_eq!(ended("SidecarMode", Some(5), 3600), 45);
    assert_eq!(ended("K8sJobMode", Some(0), 0), 40);
}

#[test]
fn rj_71_clocks_that_differ_do_not_lead_out_of_the_try() {
    for (told, wanted) in [(-3600, 0), (3600, 60)] {
        let mut world = World::in_ray("HTTPMode", json!({}));
        world.after(60);
        let end = later(START.parse().unwrap(), SignedDuration::from_secs(told));
        let info = JobInfo { status: "SUCCEEDED".to_owned(), message: String::new(), start: None, end: Some(end) };
        world.replies(Reply::Job(info));
        world.look();
        let took = world.status().end_time.unwrap().0.duration_since(START.parse().unwrap());
        assert_eq!(took.as_secs(), wanted);
    }
}
