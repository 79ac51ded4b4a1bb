//! Inputs, one after the other, into one target.

use std::collections::BTreeSet;
use std::fs;
use std::hash::Hasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::draw::Draw;
use crate::mutate::Mutator;
use crate::target::Target;

/// Most inputs that are kept because of what came of them.
const POOL_MAX: usize = 3_000;

/// Most bytes of an input that is kept: longer ones mostly repeat themselves.
const POOL_BYTES_MAX: usize = 8 * 1024;

/// Most characters of a text that a word quotes.
const QUOTED_CHARACTERS_MAX: usize = 40;

/// Most tries to shorten an input that failed.
const SHRINK_TRIES_MAX: usize = 20_000;

/// An input for which something does not hold.
#[derive(Debug)]
pub struct Failure {
    /// The name of the target.
    pub target: &'static str,
    /// The input, as short as it became.
    pub input: Vec<u8>,
    /// The rule that does not hold, in words.
    pub why: String,
}

/// The inputs of a target so far, and their results.
#[derive(Debug)]
pub struct Run {
    target: &'static Target,
    draw: Draw,
    /// Known inputs, and those of which something new came.
    pool: Vec<Vec<u8>>,
    /// The results of inputs, as far as the pool goes.
    words: BTreeSet<String>,
    /// The number of inputs.
    pub inputs: u64,
}

impl Run {
    /// Gives the target its known inputs.
    pub fn begin(target: &'static Target, seed: u64) -> Result<Self, Failure> {
        let mut run = Self {
            target,
            draw: Draw::new(seed),
            pool: target.known(),
            words: BTreeSet::new(),
            inputs: 0,
        };
        for input in run.pool.clone() {
            let word = run.give(&input)?;
            run.words.insert(word);
        }
        Ok(run)
    }

    /// Draws an input and gives it to the target.
    pub fn step(&mut self) -> Result<(), Failure> {
        let input = Mutator::new(&mut self.draw, &self.pool).next();
        let word = self.give(&input)?;
        let has_room = self.pool.len() < POOL_MAX && input.len() <= POOL_BYTES_MAX;
        if has_room && self.words.insert(word) {
            self.pool.push(input);
        }
        Ok(())
    }

    /// The number of different things that came of inputs.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    fn give(&mut self, input: &[u8]) -> Result<String, Failure> {
        self.inputs += 1;
        checked(self.target, input)
            .map(|word| shape(&word))
            .map_err(|why| self.shrunk(input, why))
    }

    /// The shortest input that was found on which the target fails as well.
    fn shrunk(&self, input: &[u8], why: String) -> Failure {
        let mut failure = Failure {
            target: self.target.name,
            input: input.to_vec(),
            why,
        };
        let mut tries_left = SHRINK_TRIES_MAX;
        let mut length = input.len().div_ceil(2);
        while length > 0 {
            let mut at = 0;
            while at < failure.input.len() && tries_left > 0 {
                tries_left -= 1;
                let mut shorter = failure.input.clone();
                shorter.drain(at..shorter.len().min(at + length));
                match checked(self.target, &shorter) {
                    Err(why) => (failure.input, failure.why) = (shorter, why),
                    Ok(_) => at += length,
                }
            }
            length /= 2;
        }
        failure
    }
}

impl Failure {
    /// Writes the input to those that every later run begins with.
    pub fn keep(&self, target: &Target) -> std::io::Result<PathBuf> {
        let folder = target.found();
        fs::create_dir_all(&folder)?;
        let mut hasher = fnv();
        hasher.write(&self.input);
        let file = folder.join(format!("{:016x}", hasher.finish()));
        fs::write(&file, &self.input)?;
        Ok(file)
    }
}

/// Returns the result of an input, or the message of a panic where something does not hold.
pub(crate) fn checked(target: &Target, input: &[u8]) -> Result<String, String> {
    catch_unwind(AssertUnwindSafe(|| (target.check)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        text.unwrap_or_else(|| "a panic without a text".to_owned())
    })
}

/// A word without its numbers, and with the beginnings alone of the texts that it quotes: the rest
/// is another one each time.
fn shape(word: &str) -> String {
    let mut shape = String::with_capacity(word.len());
    let mut quoted = None;
    let mut last = ' ';
    for character in word.chars() {
        if character == '"' && last != '\\' {
            quoted = quoted.is_none().then_some(0);
        }
        last = character;
        let is_shown = quoted.is_none_or(|characters| characters < QUOTED_CHARACTERS_MAX);
        quoted = quoted.map(|characters| characters + 1);
        if is_shown && !character.is_ascii_digit() {
            shape.push(character);
        }
    }
    shape
}

/// A hash that is the same in every run.
fn fnv() -> Fnv {
    Fnv(0xcbf2_9ce4_8422_2325)
}

/// FNV-1a <http://www.isthe.com/chongo/tech/comp/fnv/>.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
