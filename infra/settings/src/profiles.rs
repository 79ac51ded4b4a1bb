//! The profiles of a stack on AWS: what `Profile` sets where a parameter has its default.

/// The values of a parameter in the profiles. In the profile `default` it has its default.
#[derive(Debug, Clone, Copy)]
pub struct ProfileRow {
    /// Name of the parameter, which is a number.
    pub parameter: &'static str,
    pub cheap: u32,
    pub fast: u32,
}

/// The values that the profiles set.
pub static PROFILES: [ProfileRow; 4] = [
    // A second in which batches fill up: $0.87 a million deliveries at 100 events a second, instead
    // of $1.44 (docs/src/operating/aws.md).
    ProfileRow {
        parameter: "DeliverBatchWindow",
        cheap: 1,
        fast: 0,
    },
    // As many as the slow lane has, which also waits a second for them.
    ProfileRow {
        parameter: "DeliverBatchSize",
        cheap: 100,
        fast: 10,
    },
    // The least that the parameter takes, and one whole core.
    // <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
    ProfileRow {
        parameter: "PublishMemory",
        cheap: 128,
        fast: 1769,
    },
    ProfileRow {
        parameter: "DeliverMemory",
        cheap: 256,
        fast: 1769,
    },
];
