use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

struct Clock {
    start: Instant,
    state: State,
}

impl Clock {
    fn new() -> Self {
        Self { start: Instant::now(), state: State::default() }
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.start + Duration::from_millis(milliseconds)
    }

    fn pop(&mut self, milliseconds: u64) -> Option<String> {
        self.state.pop(self.at(milliseconds)).map(|(key, _)| key.name.into())
    }

    fn wake(&mut self, name: &str, milliseconds: u64) {
        self.state.wake(key(name), self.at(milliseconds));
    }

    fn finish(&mut self, name: &str, finished: Finished, milliseconds: u64) {
        self.state.finish(&key(name), finished, self.at(milliseconds));
    }
}

#[test]
fn objects_come_in_order_of_their_time_and_once() {
    let mut clock = Clock::new();
    for name in ["b", "a", "b", "c"] {
        clock.wake(name, 0);
    }
    assert_eq!((0..4).map(|_| clock.pop(0)).collect::<Vec<_>>(), [Some("b".into()), Some("a".into()), Some("c".into()), None]);
}

#[test]
fn an_object_that_is_worked_on_comes_again_afterwards_and_only_then() {
    let mut clock = Clock::new();
    clock.wake("a", 0);
    assert_eq!(clock.pop(0).as_deref(), Some("a"));
    clock.wake("a", 10);
    clock.wake("a", 20);
    assert_eq!(clock.pop(5000), None, "it is still worked on");
    clock.finish("a", Finished::Idle, 5000);
    assert_eq!(clock.pop(5000), None, "it rests");
    assert_eq!(clock.pop(5150).as_deref(), Some("a"));
    clock.finish("a", Finished::Idle, 5200);
    assert_eq!(clock.state.next_due(), None, "all events were seen by the second look");
}

#[test]
fn a_burst_of_events_leads_to_one_more_look() {
    let mut clock = Clock::new();
    clock.wake("a", 0);
    clock.pop(0);
    clock.finish("a", Finished::Idle, 1);
    for milliseconds in [2, 30, 90, 140] {
        clock.wake("a", milliseconds);
        assert_eq!(clock.pop(milliseconds), None);
    }
    assert_eq!(clock.pop(151).as_deref(), Some("a"));
    assert_eq!(clock.pop(151), None);
    clock.finish("a", Finished::Idle, 160);
    clock.wake("a", 1000);
    assert_eq!(clock.pop(1000).as_deref(), Some("a"), "the first event after a quiet time does not wait");
}

#[test]
fn an_edit_does_not_wait_for_the_rest() {
    let mut clock = Clock::new();
    clock.wake("a", 0);
    clock.pop(0);
    clock.finish("a", Finished::Idle, 1);
    clock.wake("a", 2);
    let now = clock.at(3);
    clock.state.wake_at(key("a"), now);
    assert_eq!(clock.pop(3).as_deref(), Some("a"));
    assert_eq!(clock.pop(1000), None, "the event is seen by the same look");
}

#[test]
fn the_earliest_of_several_times_counts() {
    let mut clock = Clock::new();
    clock.wake("a", 0);
    clock.pop(0);
    clock.finish("a", Finished::Again(Duration::from_secs(300)), 10);
    assert_eq!(clock.state.next_due(), Some(clock.at(300_010)));
    let due = clock.at(60_000);
    clock.state.wake_at(key("a"), due);
    assert_eq!(clock.state.next_due(), Some(clock.at(60_000)));
    let due = clock.at(90_000);
    clock.state.wake_at(key("a"), due);
    assert_eq!(clock.state.next_due(), Some(clock.at(60_000)));
    assert_eq!(clock.pop(59_999), None);
    assert_eq!(clock.pop(60_000).as_deref(), Some("a"));
}

#[test]
fn a_failure_waits_unless_something_changes() {
    let mut clock = Clock::new();
    clock.wake("a", 0);
    clock.pop(0);
    clock.finish("a", Finished::Failed(Duration::from_secs(60)), 0);
    assert_eq!(clock.state.failures(&key("a")), 1);
    assert_eq!(clock.pop(59_999), None);
    clock.wake("a", 1000);
    assert_eq!(clock.pop(1000).as_deref(), Some("a"));
    clock.finish("a", Finished::Failed(Duration::from_secs(60)), 1000);
    assert_eq!(clock.state.failures(&key("a")), 2);
    clock.pop(61_000);
    clock.finish("a", Finished::Idle, 61_000);
    assert_eq!(clock.state.failures(&key("a")), 0);
}

#[test]
fn nothing_is_kept_of_objects_that_are_gone() {
    let mut clock = Clock::new();
    clock.wake("a", 0);
    clock.pop(0);
    clock.finish("a", Finished::Gone, 0);
    assert!(clock.state.is_empty());
    // Made again meanwhile: that look must not be lost.
    clock.wake("a", 1000);
    clock.pop(1000);
    clock.wake("a", 1001);
    clock.finish("a", Finished::Gone, 1002);
    assert_eq!(clock.pop(2000).as_deref(), Some("a"));
}

#[test]
fn delays_after_failures_grow_to_a_minute_and_are_spread() {
    let ms = Duration::from_millis;
    let table = [
        (1, 0.5, ms(5)),
        (2, 0.5, ms(10)),
        (3, 0.0, ms(16)),
        (3, 1.0, ms(24)),
        (14, 0.5, ms(40_960)),
        (15, 0.5, ms(60_000)),
        (9999, 1.0, ms(72_000)),
    ];
    for (failures, random, wanted) in table {
        assert_eq!(backoff(failures, random), wanted, "{failures} {random}");
    }
}

#[test]
fn depth_counts_what_is_due() {
    let mut clock = Clock::new();
    for name in ["a", "b", "c"] {
        clock.wake(name, 0);
    }
    let due = clock.at(5000);
    clock.state.wake_at(key("d"), due);
    let now = clock.at(0);
    assert_eq!(clock.state.depth(now), 3);
    clock.pop(0);
    assert_eq!(clock.state.depth(now), 2);
    assert_eq!(clock.state.depth(clock.at(5000)), 3);
}

/// Whatever happens in whatever order: an object that was woken after its last look began is looked at again, never two looks at
/// an object at the same time.
#[test]
fn no_event_is_ever_lost() {
    let mut seed = 12345_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let names = ["a", "b", "c"];
    for _ in 0..200 {
        let mut clock = Clock::new();
        let mut owed = [false; 3];
        let mut running: Vec<usize> = Vec::new();
        let mut time = 0;
        for _ in 0..100 {
            time += random(100);
            match random(3) {
                0 => {
                    let which = usize::try_from(random(3)).unwrap();
                    clock.wake(names[which], time);
                    owed[which] = true;
                }
                1 => {
                    if let Some(name) = clock.pop(time) {
                        let which = names.iter().position(|known| *known == name).unwrap();
                        assert!(!running.contains(&which), "two looks at {name}");
                        owed[which] = false;
                        running.push(which);
                    }
                }
                _ => {
                    if let Some(which) = running.pop() {
                        let finished = [Finished::Idle, Finished::Gone, Finished::Failed(Duration::from_secs(60))];
                        clock.finish(names[which], finished[usize::try_from(random(3)).unwrap()], time);
                    }
                }
            }
        }
        for which in std::mem::take(&mut running) {
            clock.finish(names[which], Finished::Idle, time);
        }
        while let Some(name) = clock.pop(time + 200) {
            owed[names.iter().position(|known| *known == name).unwrap()] = false;
        }
        assert_eq!(owed, [false; 3]);
    }
}

#[tokio::test]
async fn the_handle_waits_for_what_is_due_or_comes() {
    let queue = Queue::default();
    queue.wake_after(key("late"), Duration::from_millis(400));
    let other = queue.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.wake(key("early"));
    });
    let began = Instant::now();
    assert_eq!(&*queue.next().await.0.name, "early");
    assert!(began.elapsed() < Duration::from_millis(400));
    assert_eq!(&*queue.next().await.0.name, "late");
    assert!(began.elapsed() >= Duration::from_millis(400));
}
