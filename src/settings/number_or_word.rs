//! A setting that is a number or, in its place, a word, as in `max_cores = "all"`.

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

/// Either, as it is given on the command line. Fails with `expected`, or why it cannot be parsed.
pub fn parse<'de, D, T>(deserializer: D, expected: &str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(i64),
        Word(String),
    }
    let text = match Form::deserialize(deserializer) {
        Ok(Form::Number(number)) => number.to_string(),
        Ok(Form::Word(word)) => word,
        Err(_) => return Err(de::Error::custom(expected)),
    };
    text.parse().map_err(de::Error::custom)
}
