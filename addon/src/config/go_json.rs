//! JSON exactly as Go's `encoding/json` writes it, which OCM's hashes are taken over.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// The value as Go prints it after reading it from an API server: no white space, keys sorted by their bytes, `<`, `>`,
/// `&` and the line separators of Unicode escaped, whole numbers as such up to 64 bits with sign and as floats above.
pub(crate) fn go_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write_value(out, member);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    // Writing to a String can't fail.
    let _ = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => write!(out, "{whole}"),
        (None, Some(float)) => write_float(out, float),
        (None, None) => write!(out, "{number}"),
    };
}

fn write_float(out: &mut String, float: f64) -> std::fmt::Result {
    let magnitude = float.abs();
    if magnitude == 0.0 {
        // Go sends a negative zero as `-0` and reads that as the whole number 0.
        return write!(out, "0");
    }
    if (1e-6..1e21).contains(&magnitude) {
        return write!(out, "{float}");
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !exponent.starts_with('-') => write!(out, "{mantissa}e+{exponent}"),
        _ => write!(out, "{text}"),
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both texts were printed by Go (1.26, with the decoder that Kubernetes uses).
    #[test]
    fn numbers_as_go_prints_them() {
        let read = r#"{"ints":[0,-1,9007199254740993,9223372036854775807,-9223372036854775808,9223372036854775808,
            18446744073709551615,-9223372036854775809],
            "floats":[1.5,1.0,0.1,1e20,1e21,1.5e300,1e-6,1e-7,1.25e-9,1.25e-10,123456789.125,-0,5e-324,100.0e0,1e2,
            0.000001234,-2.5e-8],"Z":null,"a":true,"é":{},"10":[],"9":""}"#;
        let expected = concat!(
            r#"{"10":[],"9":"","Z":null,"a":true,"#,
            r#""floats":[1.5,1,0.1,100000000000000000000,1e+21,1.5e+300,0.000001,1e-7,1.25e-9,1.25e-10,123456789.125,0,"#,
            r#"5e-324,100,100,0.000001234,-2.5e-8],"#,
            r#""ints":[0,-1,9007199254740993,9223372036854775807,-9223372036854775808,9223372036854776000,"#,
            r#"18446744073709552000,-9223372036854776000],"é":{}}"#,
        );
        assert_eq!(go_json(&serde_json::from_str(read).expect("JSON")), expected);
    }

    #[test]
    fn strings_as_go_prints_them() {
        let read = r#""<a href=\"x\">&\u2028\u2029 \u00e9 \ud83d\ude00 \t\n\r\b\f\u0001\u007f\\ /""#;
        let expected =
            "\"\\u003ca href=\\\"x\\\"\\u003e\\u0026\\u2028\\u2029 é 😀 \\t\\n\\r\\b\\f\\u0001\u{7f}\\\\ /\"";
        assert_eq!(go_json(&serde_json::from_str(read).expect("JSON")), expected);
    }
}
