//! The log event of a topic that has changed.

use super::*;

/// The log of a thread.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let lines = tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_target(false);
        tracing::subscriber::set_default(lines.with_writer(move || log.clone()).finish())
    }

    /// The log since the last call.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

#[tokio::test]
async fn changed_topic_is_logged_once_with_its_read_time() {
    let world = World::gated(&FaultPlan::none(), MAX_AGE);
    let log = Log::default();
    let _logging = log.start();
    let look = async |expected| {
        let mut look = pin!(join_all([world.look(), world.look()]));
        assert!(waits(look.as_mut()));
        world.clock.advance(Duration::from_millis(40));
        world.gate.add_permits(1);
        assert_eq!(look.await, [expected; 2]);
        world.clock.advance(MAX_AGE);
        log.take()
    };
    world.write(RECORD).await;
    assert_eq!(
        look("there").await,
        "",
        "what is read for the first time has not changed"
    );
    assert_eq!(look("there").await, "");
    world.write(RECORD.replace("Billing", "Accounting")).await;
    let reset = |took_ms: f64| {
        format!(
            " INFO routes reset, the topic has changed id=4005 topic=Orders took_ms={took_ms:?}\n"
        )
    };
    assert_eq!(look("there").await, reset(40.0));
    assert_eq!(look("there").await, "");
    world.store.delete("topics/orders.json").await.unwrap();
    assert_eq!(look("absent").await, reset(40.0));
    assert_eq!(look("absent").await, "");
}

#[tokio::test]
async fn many_that_find_the_same_change_at_once_log_it_once() {
    let world = World::gated(&FaultPlan::none(), Duration::ZERO);
    let log = Log::default();
    let _logging = log.start();
    world.gate.add_permits(1);
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    world.write(RECORD.replace("Billing", "Accounting")).await;
    let mut lookups = pin!(join_all((0..4).map(|_| world.look())));
    assert!(waits(lookups.as_mut()));
    world.gate.add_permits(4);
    assert_eq!(lookups.await, ["there"; 4]);
    assert_eq!((log.take().lines().count(), world.reads()), (1, 5));
}
