//! The checks of `posthaste doctor`: the subject, the finding, and the advice. The rules are here;
//! the code that looks at a clock, a disk or an endpoint passes its readings in.

mod check;
mod clock;
mod endpoint;
mod installation;

pub use check::{CheckResult, CheckView, DoctorView, summarize_results};
pub use clock::{CLOCK_DIFFERENCE_MAX, CLOCK_DIFFERENCE_NOTED, ClockReading, clock_check};
pub use endpoint::{
    CERTIFICATE_REST_MIN, CertificateTimes, ConnectedEndpoint, EndpointFault, certificate_check,
    endpoint_check,
};
pub use installation::{
    DESCRIPTORS_ENOUGH, OpenFiles, RELEASED, disk_check, open_files_check, own_clock_check,
    pressure_check, waiting_check,
};
