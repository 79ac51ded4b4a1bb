//! Puts the example of `POSTHASTE_DOCS_EXAMPLE`, a file, where the program includes it. Without the
//! variable it is a program that does nothing.

use std::path::Path;
use std::{env, fs};

const VARIABLE: &str = "POSTHASTE_DOCS_EXAMPLE";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let example = match env::var(VARIABLE) {
        Ok(file) => {
            println!("cargo::rerun-if-changed={file}");
            fs::read_to_string(file)?
        }
        Err(_) => "fn main() {}".to_owned(),
    };
    fs::write(Path::new(&env::var("OUT_DIR")?).join("example.rs"), example)?;
    Ok(())
}
