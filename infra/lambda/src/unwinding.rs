//! A guard of the build: a program that ends at a panic is not made.
//!
//! The glue catches a panic and reports the messages it concerns. Under `panic = "abort"`, which
//! cargo-lambda sets unless `CargoLambda.toml` says otherwise, one bad record would end the process
//! and take its whole batch along.

#[cfg(panic = "abort")]
compile_error!(
    "the functions need `panic = \"unwind\"`: build them in infra/lambda, whose CargoLambda.toml says so to \
        cargo-lambda"
);
