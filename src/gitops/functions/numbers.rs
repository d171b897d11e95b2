//! sprig's functions of numbers.

use gotmpl::{TemplateError, Value};

use super::{Registry, arity, fail, int, whole};
use crate::gitops::params;

pub(super) fn register(functions: &mut Registry) {
    for name in ["int", "int64", "atoi"] {
        functions.add(name, |arguments| Ok(Value::Int(int(&arity::<1>(arguments)?[0])?)));
    }
    let mut fold = |name: &str, start: Option<i64>, step: fn(i64, i64) -> Option<i64>| {
        functions.add(name, move |arguments| {
            let mut numbers = arguments.iter().map(int);
            let mut total = match start {
                Some(start) => start,
                None => numbers.next().ok_or_else(|| fail("takes numbers"))??,
            };
            for number in numbers {
                total = step(total, number?).ok_or_else(|| fail("overflows, or divides by zero"))?;
            }
            Ok(Value::Int(total))
        });
    };
    fold("add", Some(0), i64::checked_add);
    fold("add1", Some(1), i64::checked_add);
    fold("mul", Some(1), i64::checked_mul);
    fold("sub", None, i64::checked_sub);
    fold("div", None, i64::checked_div);
    fold("mod", None, i64::checked_rem);
    for name in ["max", "biggest"] {
        fold(name, None, |a, b| Some(a.max(b)));
    }
    fold("min", None, |a, b| Some(a.min(b)));
    fractions(functions);
    series(functions);
}

/// Numbers with a fraction. sprig computes sums and products in decimal, where binary would show a rounding error.
fn fractions(functions: &mut Registry) {
    for (name, step) in [("floor", f64::floor as fn(f64) -> f64), ("ceil", f64::ceil), ("float64", |number| number)] {
        functions.add(name, move |arguments| Ok(Value::Float(step(float(&arity::<1>(arguments)?[0])?))));
    }
    functions.add("round", |arguments| {
        let (number, places, from) = match arguments {
            [number, places] => (number, places, 0.5),
            [number, places, from] => (number, places, float(from)?),
            _ => return Err(fail("takes a number and how many digits to keep")),
        };
        let power = 10f64.powi(i32::try_from(whole(places)?).map_err(|_| fail("cannot keep so many digits"))?);
        let scaled = float(number)? * power;
        let rounded = if scaled.fract() >= from { scaled.ceil() } else { scaled.floor() };
        Ok(Value::Float(rounded / power))
    });
    let mut fold = |name: &str, step: fn(f64, f64) -> f64| {
        functions.add(name, move |arguments| {
            let [first, rest @ ..] = arguments else { return Err(fail("takes numbers")) };
            let total = rest
                .iter()
                .try_fold(float(first)?, |total, number| Ok::<_, TemplateError>(step(total, float(number)?)))?;
            // As many digits as decimal numbers are sure of: 0.1 and 0.2 are 0.3.
            Ok(Value::Float(format!("{total:.14e}").parse().unwrap_or(total)))
        });
    };
    fold("addf", |a, b| a + b);
    fold("subf", |a, b| a - b);
    fold("mulf", |a, b| a * b);
    fold("divf", |a, b| a / b);
    fold("maxf", f64::max);
    fold("minf", f64::min);
}

fn series(functions: &mut Registry) {
    functions.add("untilStep", |arguments| {
        let [start, stop, step] = arity(arguments)?;
        let numbers = steps(whole(start)?, whole(stop)?, whole(step)?)?;
        Ok(Value::from(numbers.into_iter().map(Value::Int).collect::<Vec<_>>()))
    });
    functions.add("seq", |arguments| {
        let numbers = arguments.iter().map(whole).collect::<gotmpl::Result<Vec<_>>>()?;
        let (start, end, step) = match numbers[..] {
            [end] => (1, end, if end < 1 { -1 } else { 1 }),
            [start, end] => (start, end, if end < start { -1 } else { 1 }),
            [start, step, end] if end >= start || step <= 0 => (start, end, step),
            _ => return Ok("".into()),
        };
        let past = if end < start { -1 } else { 1 };
        let numbers = steps(start, end.saturating_add(past), step)?;
        Ok(numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ").into())
    });
    functions.add("toDecimal", |arguments| {
        Ok(Value::Int(i64::from_str_radix(&params::text(&arity::<1>(arguments)?[0]), 8).unwrap_or(0)))
    });
}

fn steps(start: i64, stop: i64, step: i64) -> gotmpl::Result<Vec<i64>> {
    let up = stop >= start;
    if (up && step <= 0) || (!up && step >= 0) {
        return Ok(Vec::new());
    }
    let mut numbers = Vec::new();
    let mut next = Some(start);
    while let Some(number) = next.filter(|number| if up { *number < stop } else { *number > stop }) {
        if numbers.len() == 10_000 {
            return Err(fail("gives too many numbers"));
        }
        numbers.push(number);
        next = number.checked_add(step);
    }
    Ok(numbers)
}

/// What is no number counts as 0.
fn float(value: &Value) -> gotmpl::Result<f64> {
    Ok(match value {
        Value::Float(number) => *number,
        Value::String(text) => text.parse().unwrap_or(0.0),
        other => int(other)? as f64,
    })
}
