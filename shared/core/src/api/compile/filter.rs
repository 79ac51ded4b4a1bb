//! Filters: from what users write to tests, or the member that is at fault.

use serde_json::Value;

use super::problem::{FilterProblem, SettingsError, SettingsProblem, count_in, settings_error};
use crate::api::settings::{AdvancedFilterSettings, FilterSettings};
use crate::model::filter::{
    DecimalNumber, Filter, FilterCondition, FilterKey, FilterOperator, FilterTest, FoldedText,
    NumberTest, TextFinder, TextTest,
};
use crate::model::{
    ADVANCED_FILTER_DECIMAL_DIGITS_MAX, ADVANCED_FILTER_VALUE_CHARS_MAX,
    ADVANCED_FILTER_VALUES_MAX, ADVANCED_FILTERS_MAX, EventSchema,
};

/// The number from which on a double may be another integer than the one written: the nearest that
/// it can hold.
const DECIMAL_BOUND: f64 = 9_223_372_036_854_775_808.0;

/// Checks a subscription's filter, for events accepted in this schema.
pub(crate) fn compile_filter(
    settings: &FilterSettings,
    schema: EventSchema,
) -> Result<Filter, SettingsError> {
    let advanced = &settings.advanced_filters;
    count_in(
        "filter.advancedFilters",
        advanced.len(),
        0,
        ADVANCED_FILTERS_MAX,
    )?;
    let mut values = 0;
    let mut conditions = Vec::with_capacity(advanced.len());
    for (index, written) in advanced.iter().enumerate() {
        let condition =
            compile_condition(written, schema, &mut values).map_err(|(member, problem)| {
                settings_error(
                    format!("filter.advancedFilters[{index}].{member}"),
                    SettingsProblem::Filter(problem),
                )
            })?;
        conditions.push(condition);
    }
    Ok(Filter {
        included_event_types: settings.included_event_types.clone(),
        subject_begins_with: settings.subject_begins_with.clone(),
        subject_ends_with: settings.subject_ends_with.clone(),
        is_subject_case_sensitive: settings.is_subject_case_sensitive,
        advanced: conditions,
        arrays: settings.enable_advanced_filtering_on_arrays,
    })
}

/// The member of an advanced filter that is at fault, and why.
type FilterFault = (String, FilterProblem);

/// Checks one. `values` counts those of the filters before.
fn compile_condition(
    written: &AdvancedFilterSettings,
    schema: EventSchema,
    values: &mut usize,
) -> Result<FilterCondition, FilterFault> {
    let key = FilterKey::parse(&written.key, schema);
    let key = key.map_err(|error| ("key".to_owned(), FilterProblem::Key(error)))?;
    let mut operands = FilterOperands { written, values };
    let test = match written.operator_type {
        FilterOperator::NumberIn => {
            FilterTest::Number(NumberTest::In(operands.parse_all(parse_number)?))
        }
        FilterOperator::NumberNotIn => {
            FilterTest::NotNumber(NumberTest::In(operands.parse_all(parse_number)?))
        }
        FilterOperator::NumberLessThan => {
            FilterTest::Number(NumberTest::Less(operands.parse_one(parse_number)?))
        }
        FilterOperator::NumberGreaterThan => {
            FilterTest::Number(NumberTest::Greater(operands.parse_one(parse_number)?))
        }
        FilterOperator::NumberLessThanOrEquals => {
            FilterTest::Number(NumberTest::AtMost(operands.parse_one(parse_number)?))
        }
        FilterOperator::NumberGreaterThanOrEquals => {
            FilterTest::Number(NumberTest::AtLeast(operands.parse_one(parse_number)?))
        }
        FilterOperator::NumberInRange => {
            FilterTest::Number(NumberTest::Within(operands.parse_all(parse_range)?))
        }
        FilterOperator::NumberNotInRange => {
            FilterTest::NotNumber(NumberTest::Within(operands.parse_all(parse_range)?))
        }
        FilterOperator::BoolEquals => FilterTest::Bool(operands.parse_one(parse_boolean)?),
        FilterOperator::StringContains => {
            FilterTest::Text(TextTest::Contains(operands.parse_all(parse_finder)?))
        }
        FilterOperator::StringNotContains => {
            FilterTest::NotText(TextTest::Contains(operands.parse_all(parse_finder)?))
        }
        FilterOperator::StringBeginsWith => {
            FilterTest::Text(TextTest::BeginsWith(operands.parse_all(parse_text)?))
        }
        FilterOperator::StringNotBeginsWith => {
            FilterTest::NotText(TextTest::BeginsWith(operands.parse_all(parse_text)?))
        }
        FilterOperator::StringEndsWith => {
            FilterTest::Text(TextTest::EndsWith(operands.parse_all(parse_text)?))
        }
        FilterOperator::StringNotEndsWith => {
            FilterTest::NotText(TextTest::EndsWith(operands.parse_all(parse_text)?))
        }
        FilterOperator::StringIn => FilterTest::Text(TextTest::In(operands.parse_all(parse_text)?)),
        FilterOperator::StringNotIn => {
            FilterTest::NotText(TextTest::In(operands.parse_all(parse_text)?))
        }
        FilterOperator::IsNullOrUndefined => operands.require_none(FilterTest::Null)?,
        FilterOperator::IsNotNull => operands.require_none(FilterTest::NotNull)?,
    };
    Ok(FilterCondition { key, test })
}

/// The operands that a value is compared with.
struct FilterOperands<'a> {
    written: &'a AdvancedFilterSettings,
    values: &'a mut usize,
}

impl FilterOperands<'_> {
    /// Every one of `values`.
    fn parse_all<T>(
        &mut self,
        parse: fn(&Value) -> Result<T, FilterProblem>,
    ) -> Result<Box<[T]>, FilterFault> {
        self.refuse_member("value", self.written.value.is_some())?;
        let values = self.written.values.as_deref().unwrap_or_default();
        if values.is_empty() {
            return Err((
                "values".to_owned(),
                FilterProblem::Expected("at least one value"),
            ));
        }
        values
            .iter()
            .enumerate()
            .map(|(index, value)| self.parse_value(&format!("values[{index}]"), value, parse))
            .collect()
    }

    /// The only one, `value`.
    fn parse_one<T>(
        &mut self,
        parse: fn(&Value) -> Result<T, FilterProblem>,
    ) -> Result<T, FilterFault> {
        self.refuse_member("values", self.written.values.is_some())?;
        self.parse_value(
            "value",
            self.written.value.as_ref().unwrap_or(&Value::Null),
            parse,
        )
    }

    /// Refuses values beside an operator that takes none.
    fn require_none(&self, test: FilterTest) -> Result<FilterTest, FilterFault> {
        self.refuse_member("value", self.written.value.is_some())?;
        self.refuse_member("values", self.written.values.is_some())?;
        Ok(test)
    }

    fn parse_value<T>(
        &mut self,
        member: &str,
        value: &Value,
        parse: fn(&Value) -> Result<T, FilterProblem>,
    ) -> Result<T, FilterFault> {
        *self.values += 1;
        if *self.values > ADVANCED_FILTER_VALUES_MAX {
            return Err((member.to_owned(), FilterProblem::TooMany));
        }
        parse(value).map_err(|problem| (member.to_owned(), problem))
    }

    fn refuse_member(&self, member: &str, is_written: bool) -> Result<(), FilterFault> {
        if is_written {
            return Err((
                member.to_owned(),
                FilterProblem::Surplus(self.written.operator_type),
            ));
        }
        Ok(())
    }
}

fn parse_number(value: &Value) -> Result<DecimalNumber, FilterProblem> {
    let Value::Number(number) = value else {
        return Err(FilterProblem::Expected("a number"));
    };
    let text = match number.as_f64() {
        Some(double) if !number.is_i64() && !number.is_u64() => exact_decimal(double)?,
        _ => number.to_string(),
    };
    DecimalNumber::parse(&text).ok_or(FilterProblem::Expected("a number"))
}

/// The shortest text of a double, unless the text it was read from may have been another number.
fn exact_decimal(double: f64) -> Result<String, FilterProblem> {
    let text = format!("{double:e}");
    let mantissa = text.split('e').next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    if double.abs() >= DECIMAL_BOUND || digits > ADVANCED_FILTER_DECIMAL_DIGITS_MAX {
        return Err(FilterProblem::Inexact);
    }
    Ok(text)
}

fn parse_range(value: &Value) -> Result<(DecimalNumber, DecimalNumber), FilterProblem> {
    let Some([low, high]) = value.as_array().map(Vec::as_slice) else {
        return Err(FilterProblem::Expected(
            "a range of two numbers, [from, to]",
        ));
    };
    let low = parse_number(low)?;
    let high = parse_number(high)?;
    if low > high {
        Err(FilterProblem::Backwards)
    } else {
        Ok((low, high))
    }
}

fn parse_boolean(value: &Value) -> Result<bool, FilterProblem> {
    value
        .as_bool()
        .ok_or(FilterProblem::Expected("true or false"))
}

fn parse_text(value: &Value) -> Result<FoldedText, FilterProblem> {
    let text = value.as_str().ok_or(FilterProblem::Expected("a string"))?;
    if text.chars().count() > ADVANCED_FILTER_VALUE_CHARS_MAX {
        return Err(FilterProblem::TooLong);
    }
    Ok(FoldedText::new(text))
}

fn parse_finder(value: &Value) -> Result<TextFinder, FilterProblem> {
    Ok(parse_text(value)?.to_finder())
}

#[cfg(test)]
mod tests;
