//! Filters: from what users write to tests, or the member that is at fault.

use serde_json::Value;

use super::problem::{FilterProblem, Problem, SettingsError, count_in, error};
use crate::api::settings::{AdvancedFilterSettings, FilterSettings};
use crate::filter::{
    Condition, Filter, FilterOperator, Folded, Key, Number, NumberTest, Part, Test, TextTest,
};
use crate::model::{
    ADVANCED_FILTER_DECIMAL_DIGITS_MAX, ADVANCED_FILTER_VALUE_CHARS_MAX,
    ADVANCED_FILTER_VALUES_MAX, ADVANCED_FILTERS_MAX, Schema,
};

/// The number from which on a double may be another integer than the one written: the nearest that
/// it can hold.
const DECIMAL_BOUND: f64 = 9_223_372_036_854_775_808.0;

/// Checks a subscription's filter, for events accepted in this schema.
pub(crate) fn filter(settings: &FilterSettings, schema: Schema) -> Result<Filter, SettingsError> {
    let advanced = &settings.advanced_filters;
    count_in(
        "filter.advancedFilters",
        advanced.len(),
        0,
        ADVANCED_FILTERS_MAX,
    )?;
    let mut values = 0;
    let condition = |(index, written): (usize, &AdvancedFilterSettings)| {
        let fault = |(member, problem): (String, FilterProblem)| {
            error(
                format!("filter.advancedFilters[{index}].{member}"),
                Problem::Filter(problem),
            )
        };
        condition(written, schema, &mut values).map_err(fault)
    };
    Ok(Filter {
        included_event_types: settings.included_event_types.clone(),
        subject_begins_with: settings.subject_begins_with.clone(),
        subject_ends_with: settings.subject_ends_with.clone(),
        is_subject_case_sensitive: settings.is_subject_case_sensitive,
        advanced: advanced
            .iter()
            .enumerate()
            .map(condition)
            .collect::<Result<_, _>>()?,
        arrays: settings.enable_advanced_filtering_on_arrays,
    })
}

/// The member of an advanced filter that is at fault, and why.
type Fault = (String, FilterProblem);

/// Checks one. `values` counts those of the filters before.
fn condition(
    written: &AdvancedFilterSettings,
    schema: Schema,
    values: &mut usize,
) -> Result<Condition, Fault> {
    let key = Key::parse(&written.key, schema);
    let key = key.map_err(|error| ("key".to_owned(), FilterProblem::Key(error)))?;
    let mut operands = Operands { written, values };
    let test = match written.operator_type {
        FilterOperator::NumberIn => Test::Number(NumberTest::In(operands.all(number)?)),
        FilterOperator::NumberNotIn => Test::NotNumber(NumberTest::In(operands.all(number)?)),
        FilterOperator::NumberLessThan => Test::Number(NumberTest::Less(operands.one(number)?)),
        FilterOperator::NumberGreaterThan => {
            Test::Number(NumberTest::Greater(operands.one(number)?))
        }
        FilterOperator::NumberLessThanOrEquals => {
            Test::Number(NumberTest::AtMost(operands.one(number)?))
        }
        FilterOperator::NumberGreaterThanOrEquals => {
            Test::Number(NumberTest::AtLeast(operands.one(number)?))
        }
        FilterOperator::NumberInRange => Test::Number(NumberTest::Within(operands.all(range)?)),
        FilterOperator::NumberNotInRange => {
            Test::NotNumber(NumberTest::Within(operands.all(range)?))
        }
        FilterOperator::BoolEquals => Test::Bool(operands.one(boolean)?),
        FilterOperator::StringContains => Test::Text(TextTest::Contains(operands.all(part)?)),
        FilterOperator::StringNotContains => Test::NotText(TextTest::Contains(operands.all(part)?)),
        FilterOperator::StringBeginsWith => Test::Text(TextTest::BeginsWith(operands.all(text)?)),
        FilterOperator::StringNotBeginsWith => {
            Test::NotText(TextTest::BeginsWith(operands.all(text)?))
        }
        FilterOperator::StringEndsWith => Test::Text(TextTest::EndsWith(operands.all(text)?)),
        FilterOperator::StringNotEndsWith => Test::NotText(TextTest::EndsWith(operands.all(text)?)),
        FilterOperator::StringIn => Test::Text(TextTest::In(operands.all(text)?)),
        FilterOperator::StringNotIn => Test::NotText(TextTest::In(operands.all(text)?)),
        FilterOperator::IsNullOrUndefined => operands.none(Test::Null)?,
        FilterOperator::IsNotNull => operands.none(Test::NotNull)?,
    };
    Ok(Condition { key, test })
}

/// The operands that a value is compared with.
struct Operands<'a> {
    written: &'a AdvancedFilterSettings,
    values: &'a mut usize,
}

impl Operands<'_> {
    /// Every one of `values`.
    fn all<T>(&mut self, parse: fn(&Value) -> Result<T, FilterProblem>) -> Result<Box<[T]>, Fault> {
        self.refuse("value", self.written.value.is_some())?;
        let values = self.written.values.as_deref().unwrap_or_default();
        if values.is_empty() {
            return Err((
                "values".to_owned(),
                FilterProblem::Expected("at least one value"),
            ));
        }
        let parse = |(index, value)| self.take(&format!("values[{index}]"), value, parse);
        values.iter().enumerate().map(parse).collect()
    }

    /// The only one, `value`.
    fn one<T>(&mut self, parse: fn(&Value) -> Result<T, FilterProblem>) -> Result<T, Fault> {
        self.refuse("values", self.written.values.is_some())?;
        self.take(
            "value",
            self.written.value.as_ref().unwrap_or(&Value::Null),
            parse,
        )
    }

    /// None.
    fn none(&self, test: Test) -> Result<Test, Fault> {
        self.refuse("value", self.written.value.is_some())?;
        self.refuse("values", self.written.values.is_some())?;
        Ok(test)
    }

    fn take<T>(
        &mut self,
        member: &str,
        value: &Value,
        parse: fn(&Value) -> Result<T, FilterProblem>,
    ) -> Result<T, Fault> {
        *self.values += 1;
        if *self.values > ADVANCED_FILTER_VALUES_MAX {
            return Err((member.to_owned(), FilterProblem::TooMany));
        }
        parse(value).map_err(|problem| (member.to_owned(), problem))
    }

    fn refuse(&self, member: &str, is_written: bool) -> Result<(), Fault> {
        if is_written {
            return Err((
                member.to_owned(),
                FilterProblem::Surplus(self.written.operator_type),
            ));
        }
        Ok(())
    }
}

fn number(value: &Value) -> Result<Number, FilterProblem> {
    let Value::Number(number) = value else {
        return Err(FilterProblem::Expected("a number"));
    };
    let text = match number.as_f64() {
        Some(double) if !number.is_i64() && !number.is_u64() => decimal(double)?,
        _ => number.to_string(),
    };
    Number::parse(&text).ok_or(FilterProblem::Expected("a number"))
}

/// The shortest text of a double, unless the text it was read from may have been another number.
fn decimal(double: f64) -> Result<String, FilterProblem> {
    let text = format!("{double:e}");
    let mantissa = text.split('e').next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    if double.abs() >= DECIMAL_BOUND || digits > ADVANCED_FILTER_DECIMAL_DIGITS_MAX {
        return Err(FilterProblem::Inexact);
    }
    Ok(text)
}

fn range(value: &Value) -> Result<(Number, Number), FilterProblem> {
    let Some([low, high]) = value.as_array().map(Vec::as_slice) else {
        return Err(FilterProblem::Expected(
            "a range of two numbers, [from, to]",
        ));
    };
    let low = number(low)?;
    let high = number(high)?;
    if low > high {
        Err(FilterProblem::Backwards)
    } else {
        Ok((low, high))
    }
}

fn boolean(value: &Value) -> Result<bool, FilterProblem> {
    value
        .as_bool()
        .ok_or(FilterProblem::Expected("true or false"))
}

fn text(value: &Value) -> Result<Folded, FilterProblem> {
    let text = value.as_str().ok_or(FilterProblem::Expected("a string"))?;
    if text.chars().count() > ADVANCED_FILTER_VALUE_CHARS_MAX {
        return Err(FilterProblem::TooLong);
    }
    Ok(Folded::new(text))
}

fn part(value: &Value) -> Result<Part, FilterProblem> {
    Ok(text(value)?.part())
}

#[cfg(test)]
mod tests;
