//! The six functions as Lambda programs: what each reads from its environment, and its wiring over SQS and S3.
