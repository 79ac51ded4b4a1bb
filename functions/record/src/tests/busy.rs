//! Busy hours on AWS, where the schedule of the merge comes seldom.

use posthaste_core::delivery_log::MergeCheckpoint;
use posthaste_core::stored::{RECORD_LEASE, StoredLease};

use super::*;

fn on_aws() -> RecordSettings {
    RecordSettings::default().on_aws()
}

async fn write(kit: &Kit, record: &LogRecorder<TestPorts>, records: &[LogRecord]) {
    let body = render_records(records).remove(0);
    let batch = vec![message("m", body)];
    assert_eq!(record.handle(batch, kit.deadline()).await.failures, []);
}

/// Waits until there are so many fresh files, and nothing more happens at this time.
async fn once_written(kit: &Kit, files: usize) {
    let mut looks = 0;
    while looks < 1_000 {
        tokio::task::yield_now().await;
        looks += usize::from(kit.files()[1] == files);
    }
}

/// An hour that two processes write never has more than 120 files to merge.
#[tokio::test]
async fn hour_with_two_writers_has_at_most_120_files_to_merge() {
    let kit = Kit::with_settings(&FaultPlan::none(), on_aws());
    let other = wire(
        &kit.clock,
        (&kit.log, &kit.state, &kit.queue),
        &FaultPlan::none(),
        9,
    );
    let other = LogRecorder::new(other, on_aws());
    let all = records(0..600);
    let mut most = 0;
    for (n, some) in all.chunks(2).enumerate() {
        write(&kit, if n % 2 == 0 { &kit.record } else { &other }, some).await;
        most = most.max(kit.files()[1]);
    }
    assert!((50..=80).contains(&most), "{most}");
    assert_eq!(kit.ids().await, ids_of(&all));
}

/// A process that finds another merge writes nothing until that merge ends.
#[tokio::test]
async fn writer_waits_while_another_process_merges() {
    let kit = Kit::with_settings(&FaultPlan::none(), on_aws());
    let all = records(0..70);
    all[..60]
        .iter()
        .for_each(|it| drop(kit.put_fresh(7, std::slice::from_ref(it))));
    let lapses_at = kit.clock.now() + Duration::from_secs(3);
    let lease = |lapses_at| StoredLease {
        lapses_at,
        holder: "other".to_owned(),
        checkpoint: MergeCheckpoint::default(),
    };
    kit.state.write(RECORD_LEASE, lease(lapses_at).render());
    for one in all[60..69].chunks(1) {
        write(&kit, &kit.record, one).await;
    }
    assert_eq!(kit.files(), [0, 69]);
    let passes = async {
        once_written(&kit, 70).await;
        assert_eq!(kit.files(), [0, 70]);
        kit.clock.advance(Duration::from_secs(4));
    };
    tokio::join!(write(&kit, &kit.record, &all[69..]), passes);
    assert_eq!((kit.files(), kit.ids().await), ([1, 0], ids_of(&all)));
}

#[tokio::test]
async fn a_batch_does_not_wait_for_another_merge_beyond_its_time() {
    let kit = Kit::with_settings(&FaultPlan::none(), on_aws());
    let all = records(0..71);
    all[..60]
        .iter()
        .for_each(|it| drop(kit.put_fresh(7, std::slice::from_ref(it))));
    let lease = StoredLease {
        lapses_at: kit.clock.now() + Duration::from_secs(100),
        holder: "other".to_owned(),
        checkpoint: MergeCheckpoint::default(),
    };
    kit.state.write(RECORD_LEASE, lease.render());
    for one in all[60..69].chunks(1) {
        write(&kit, &kit.record, one).await;
    }
    let passes = async {
        once_written(&kit, 70).await;
        kit.clock.advance(Duration::from_secs(20));
    };
    tokio::join!(write(&kit, &kit.record, &all[69..70]), passes);
    assert_eq!(kit.files(), [0, 70]);
    kit.clock.advance(Duration::from_secs(100));
    write(&kit, &kit.record, &all[70..]).await;
    assert_eq!(
        (kit.files(), kit.ids().await),
        ([1, 0], ids_of(&all)),
        "the next batch looks at once"
    );
}

#[tokio::test]
async fn a_busy_hour_that_cannot_be_merged_fails_no_batch() {
    let plan = FaultPlan::at(
        posthaste_testkit::CallFault::Before(posthaste_ports::ErrorKind::Other),
        |effect| effect.operation == posthaste_testkit::PortOperation::List,
    );
    let kit = Kit::with_settings(&plan, on_aws());
    let all = records(0..70);
    for one in all.chunks(1) {
        write(&kit, &kit.record, one).await;
    }
    assert_eq!(kit.files(), [0, 70]);
    plan.switch(false);
    write(&kit, &kit.record, &all[..1]).await;
    assert_eq!((kit.files(), kit.ids().await), ([1, 0], ids_of(&all)));
}
