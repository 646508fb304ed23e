//! The types that a WAITING event names for what it needs, and the check of an answer against them.

use std::fmt;

use serde_json::{Map, Value};

/// A type of an expected input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputType {
    Text,
    Integer,
    Flag,
    Map,
    List(Box<InputType>),
}

/// A text that names no type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no type; there are string, integer, boolean, map and array<T>")]
pub struct InputTypeError(String);

/// No answer that a person gives is deeper than this.
const DEEPEST: usize = 32;

impl InputType {
    pub fn new(text: &str) -> Result<Self, InputTypeError> {
        let mut inner = text;
        let mut depth = 0;
        while let Some(rest) = inner.strip_prefix("array<").and_then(|rest| rest.strip_suffix('>')) {
            inner = rest;
            depth += 1;
        }
        let innermost = match inner {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "boolean" => Self::Flag,
            "map" => Self::Map,
            _ => return Err(InputTypeError(text.to_owned())),
        };
        if depth > DEEPEST {
            return Err(InputTypeError(text.to_owned()));
        }
        Ok((0..depth).fold(innermost, |inner, _| Self::List(Box::new(inner))))
    }

    /// Whether `value` is of this type.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) | (Self::Map, Value::Object(_)) => true,
            (Self::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
            (Self::List(inner), Value::Array(values)) => values.iter().all(|value| inner.accepts(value)),
            (Self::Text | Self::Flag | Self::Map | Self::Integer | Self::List(_), _) => false,
        }
    }

    /// Reads what a person typed: text as it is, everything else as JSON.
    pub fn parse(&self, text: &str) -> Option<Value> {
        let value = match self {
            Self::Text => Value::String(text.to_owned()),
            Self::Integer | Self::Flag | Self::Map | Self::List(_) => serde_json::from_str(text).ok()?,
        };
        self.accepts(&value).then_some(value)
    }
}

impl fmt::Display for InputType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("string"),
            Self::Integer => f.write_str("integer"),
            Self::Flag => f.write_str("boolean"),
            Self::Map => f.write_str("map"),
            Self::List(inner) => write!(f, "array<{inner}>"),
        }
    }
}

/// What is wrong with `inputs` as an answer to a request for `expected`, one line for each field.
pub fn check_inputs(expected: &[(String, InputType)], inputs: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, wanted) in expected {
        match inputs.get(name) {
            None => problems.push(format!("`{name}` ({wanted}) is missing")),
            Some(value) if !wanted.accepts(value) => problems.push(format!("`{name}` must be {wanted}")),
            Some(_) => {}
        }
    }
    let asked = |name: &String| expected.iter().any(|(asked, _)| asked == name);
    problems.extend(inputs.keys().filter(|name| !asked(name)).map(|name| format!("`{name}` was not asked for")));
    problems
}
