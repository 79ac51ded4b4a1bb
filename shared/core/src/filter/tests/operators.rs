//! Each operator and its negation against a table.

use super::*;

/// One operator with its operand, on the key `data.a`: the data that pass, and those that do not,
/// with arrays switched off and then on.
struct Table<'a> {
    operator: &'a str,
    operand: Value,
    pass: &'a [&'a str],
    fail: &'a [&'a str],
    arrays_pass: &'a [&'a str],
    arrays_fail: &'a [&'a str],
}

impl Table<'_> {
    fn check(&self) {
        let member = match &self.operand {
            Value::Array(_) => "values",
            _ => "value",
        };
        let one = |arrays: bool, a: &str| {
            let condition =
                json!({ "operatorType": self.operator, "key": "data.a", member: self.operand });
            let filter = json!({ "advancedFilters": [condition], "enableAdvancedFilteringOnArrays": arrays });
            let data = if a == "?" {
                "{}".to_owned()
            } else {
                format!(r#"{{"a":{a}}}"#)
            };
            passes(EventSchema::CloudEvents, filter, &event(&data))
        };
        for (arrays, values, expected) in [
            (false, self.pass, true),
            (true, self.pass, true),
            (false, self.fail, false),
            (true, self.fail, false),
            (true, self.arrays_pass, true),
            (true, self.arrays_fail, false),
        ] {
            for a in values {
                assert_eq!(
                    one(arrays, a),
                    expected,
                    "{} {} of {a}, arrays {arrays}",
                    self.operator,
                    self.operand
                );
            }
        }
    }
}

/// Checks an operator and its negation, which passes exactly what the other does not.
fn check_both(operator: &str, negation: &str, table: &Table<'_>) {
    Table {
        operator,
        operand: table.operand.clone(),
        ..*table
    }
    .check();
    let negated = Table {
        operator: negation,
        operand: table.operand.clone(),
        pass: table.fail,
        fail: table.pass,
        arrays_pass: table.arrays_fail,
        arrays_fail: table.arrays_pass,
    };
    negated.check();
    // An array into which no filter looks is not a value of the type.
    let off = Table {
        operator: negation,
        pass: table.arrays_pass,
        operand: table.operand.clone(),
        ..NOTHING
    };
    for a in off.pass {
        let condition = json!({ "operatorType": negation, "key": "data.a", "values": off.operand });
        let filter = json!({ "advancedFilters": [condition] });
        assert!(
            passes(
                EventSchema::CloudEvents,
                filter,
                &event(&format!(r#"{{"a":{a}}}"#))
            ),
            "{negation} {a}"
        );
    }
}

const NOTHING: Table<'_> = Table {
    operator: "",
    operand: Value::Null,
    pass: &[],
    fail: &[],
    arrays_pass: &[],
    arrays_fail: &[],
};

/// Values that are no numbers, with every operator.
const NO_NUMBER: [&str; 7] = ["?", "null", "true", "{}", "\"5\"", "\"\"", r#"{"a":5}"#];

#[test]
fn number_in_and_not_in() {
    let fail: Vec<&str> = [
        ["4", "-5", "5.0000000000000000001", "50"].as_slice(),
        &NO_NUMBER,
    ]
    .concat();
    let table = Table {
        operand: json!([5, 1, 0.1]),
        pass: &["5", "1", "5.0", "0.5e1", "0.1", "100e-3"],
        fail: &fail,
        arrays_pass: &["[5]", "[2,3,1]", r#"["x",5,{}]"#],
        arrays_fail: &["[]", "[2,3]", r#"["5"]"#, "[[5]]", r#"[{"a":5}]"#, "[null]"],
        ..NOTHING
    };
    check_both("NumberIn", "NumberNotIn", &table);
}

#[test]
fn numbers_are_compared_without_loss() {
    let check = |operator: &str, operand: Value, pass: &[&str], fail: &[&str]| {
        Table {
            operator,
            operand,
            pass,
            fail,
            ..NOTHING
        }
        .check();
    };
    check(
        "NumberIn",
        json!([9_007_199_254_740_993_u64]),
        &["9007199254740993"],
        &["9007199254740992", "9007199254740994"],
    );
    check(
        "NumberIn",
        json!([18_446_744_073_709_551_615_u64]),
        &["18446744073709551615"],
        &["18446744073709551616", "18446744073709551614"],
    );
    check("NumberIn", json!([0]), &["-0", "0e999999"], &["1e-999999"]);
    check(
        "NumberGreaterThan",
        json!(9e18),
        &["1e999999", "99999999999999999999"],
        &["-1e999999"],
    );
    check(
        "NumberLessThan",
        json!(0),
        &["-1e999999", "-1e-999999"],
        &["1e-999999", "0", "-0"],
    );
}

#[test]
#[expect(clippy::approx_constant, reason = "the page's own example")]
fn number_in_range_and_not_in_range() {
    let fail: Vec<&str> = [
        ["3", "1000", "2999.99", "4000.1", "-3500"].as_slice(),
        &NO_NUMBER,
    ]
    .concat();
    let table = Table {
        operand: json!([[3.14159, 999.95], [3000, 4000]]),
        pass: &["3.14159", "999.95", "3000", "4000", "3999.999", "4e3"],
        fail: &fail,
        arrays_pass: &["[1,2,500]", "[5000,3500,1]", r#"["x",4000]"#],
        arrays_fail: &["[]", "[1,2000,5000]", r#"["500"]"#],
        ..NOTHING
    };
    check_both("NumberInRange", "NumberNotInRange", &table);
}

#[test]
fn numbers_less_and_greater() {
    let check =
        |operator, pass: &[&str], fail: &[&str], arrays_pass: &[&str], arrays_fail: &[&str]| {
            let fail: Vec<&str> = [fail, &NO_NUMBER].concat();
            Table {
                operator,
                operand: json!(100),
                pass,
                fail: &fail,
                arrays_pass,
                arrays_fail,
            }
            .check();
        };
    let none = ["[]", r#"["1"]"#, "[null]"];
    check(
        "NumberLessThan",
        &["99.9", "-100"],
        &["100", "101"],
        &["[200,99]"],
        &[["[100,101]"].as_slice(), &none].concat(),
    );
    check(
        "NumberLessThanOrEquals",
        &["100", "1e2"],
        &["100.1"],
        &["[200,100]"],
        &[["[101]"].as_slice(), &none].concat(),
    );
    check(
        "NumberGreaterThan",
        &["100.1", "1e3"],
        &["100", "-101"],
        &["[1,101,2]"],
        &[["[100,99]"].as_slice(), &none].concat(),
    );
    check(
        "NumberGreaterThanOrEquals",
        &["100"],
        &["99.99"],
        &["[1,100]"],
        &[["[99]"].as_slice(), &none].concat(),
    );
}

#[test]
fn bool_equals() {
    let check = |expected: bool, pass: &str, fail: &str| {
        let fail = [fail, "?", "null", "1", "0", "\"true\"", "\"false\"", "{}"];
        let some = format!("[1,{pass}]");
        let none = format!("[{},\"{pass}\"]", fail[0]);
        Table {
            operator: "BoolEquals",
            operand: json!(expected),
            pass: &[pass],
            fail: &fail,
            arrays_pass: &[&some, "[true,false]"],
            arrays_fail: &[&none, "[]"],
        }
        .check();
    };
    check(true, "true", "false");
    check(false, "false", "true");
}

/// Values that are no strings, with every operator.
const NO_TEXT: [&str; 6] = ["?", "null", "true", "5", "{}", r#"{"a":"contoso"}"#];

#[test]
fn string_in_and_not_in() {
    let fail: Vec<&str> = [
        ["\"contos\"", "\"contoso \"", "\"\"", "\"xcontoso\""].as_slice(),
        &NO_TEXT,
    ]
    .concat();
    let table = Table {
        operand: json!(["Contoso", "fabrikam", "ÄÖÜ"]),
        pass: &[
            "\"contoso\"",
            "\"CONTOSO\"",
            "\"fabrikam\"",
            "\"äÖü\"",
            r#""\u0063ontoso""#,
        ],
        fail: &fail,
        arrays_pass: &[r#"["x","FABRIKAM"]"#, r#"[1,"contoso",null]"#],
        arrays_fail: &["[]", r#"["x","y"]"#, r#"[["contoso"]]"#],
        ..NOTHING
    };
    check_both("StringIn", "StringNotIn", &table);
}

#[test]
fn string_contains_and_does_not() {
    let fail: Vec<&str> = [["\"micro soft\"", "\"\"", "\"azur\""].as_slice(), &NO_TEXT].concat();
    let table = Table {
        operand: json!(["Microsoft", "azure"]),
        pass: &["\"Azure Data Factory\"", "\"xMICROSOFTx\"", "\"microsoft\""],
        fail: &fail,
        arrays_pass: &[r#"["x","an azure sky"]"#],
        arrays_fail: &["[]", r#"["micro","soft"]"#],
        ..NOTHING
    };
    check_both("StringContains", "StringNotContains", &table);
}

#[test]
fn string_begins_with_and_does_not() {
    let fail: Vec<&str> = [["\"an event\"", "\"even\"", "\"\""].as_slice(), &NO_TEXT].concat();
    let table = Table {
        operand: json!(["event", "message"]),
        pass: &["\"Event Hubs\"", "\"event\"", "\"MESSAGEs\""],
        fail: &fail,
        arrays_pass: &[r#"["zzz","a","messages","b"]"#, r#"["eventually"]"#],
        arrays_fail: &["[]", r#"["even","mess","f"]"#],
        ..NOTHING
    };
    check_both("StringBeginsWith", "StringNotBeginsWith", &table);
}

#[test]
fn string_ends_with_and_does_not() {
    let fail: Vec<&str> = [["\"jpg.txt\"", "\"pg\"", "\"\""].as_slice(), &NO_TEXT].concat();
    let table = Table {
        operand: json!(["jpg", "PNG"]),
        pass: &["\"EventGrid.png\"", "\"jpg\"", "\"x.JPG\""],
        fail: &fail,
        arrays_pass: &[r#"["a.txt","b.jpg"]"#],
        arrays_fail: &["[]", r#"["a.txt","jpg.b"]"#],
        ..NOTHING
    };
    check_both("StringEndsWith", "StringNotEndsWith", &table);
}

/// Pairs of texts that Unicode's simple case folding takes for the same, some of other lengths.
const SAME: [(&str, &str); 8] = [
    ("ΟΔΟΣ", "οδος"),
    ("οδος", "οδοσ"),
    ("µg", "ΜG"),
    ("\u{212A}", "k"),
    ("ſtraße", "STRAẞE"),
    ("\u{2126}", "Ω"),
    ("ϐϑϕ", "βθφ"),
    ("\u{13A0}", "\u{AB70}"),
];

#[test]
fn every_operator_of_strings_folds_as_unicode_does() {
    let pairs = SAME.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    for (written, seen) in pairs {
        for (operator, negation, text) in [
            ("StringIn", "StringNotIn", seen.to_owned()),
            ("StringContains", "StringNotContains", format!("-{seen}-")),
            (
                "StringBeginsWith",
                "StringNotBeginsWith",
                format!("{seen}-"),
            ),
            ("StringEndsWith", "StringNotEndsWith", format!("-{seen}")),
        ] {
            let value = json!(text).to_string();
            let array = json!(["\u{1}", text, "zz"]).to_string();
            let table = Table {
                operand: json!([written]),
                pass: &[&value],
                fail: &["\"\"", "\"ss\"", "\"ı\""],
                arrays_pass: &[&array],
                ..NOTHING
            };
            check_both(operator, negation, &table);
        }
    }
}

#[test]
fn an_empty_string_is_in_every_string_and_in_nothing_else() {
    for operator in ["StringContains", "StringBeginsWith", "StringEndsWith"] {
        Table {
            operator,
            operand: json!([""]),
            pass: &["\"\"", "\"x\""],
            fail: &NO_TEXT,
            ..NOTHING
        }
        .check();
    }
}

#[test]
fn null_and_not_null() {
    let other = ["0", "false", "\"\"", "{}", "[]", "[null]"];
    let null = ["?", "null"];
    Table {
        operator: "IsNullOrUndefined",
        pass: &null,
        fail: &other,
        ..NOTHING
    }
    .check();
    Table {
        operator: "IsNotNull",
        pass: &other,
        fail: &null,
        ..NOTHING
    }
    .check();
}
