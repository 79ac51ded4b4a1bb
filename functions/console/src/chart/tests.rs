//! Charts as they are written.

use posthaste_core::model::Timestamp;

use super::*;

fn window() -> ChartWindow {
    // 2023-11-14 22:13:20 UTC.
    ChartWindow::last_hours(1, Timestamp::from_millis(1_700_000_000_000))
}

fn drawn(shape: ChartShape, values: &[Option<f64>]) -> String {
    path::for_values(shape, values, 10.0)
}

#[test]
fn a_line_leaves_gaps_and_points_that_change_nothing_out() {
    let known = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(
        drawn(ChartShape::Line, &known(&[0.0, 10.0])),
        "M137.5 124L308.5 8"
    );
    let flat = drawn(ChartShape::Line, &known(&[5.0; 100]));
    assert_eq!(flat, "M53.7 66L392.3 66");
    let gap = drawn(
        ChartShape::Line,
        &[Some(0.0), Some(0.0), None, Some(10.0), None, None],
    );
    assert_eq!(gap, "M80.5 124L137.5 124");
    assert_eq!(drawn(ChartShape::Line, &[None, None]), "");
    assert_eq!(drawn(ChartShape::Line, &[]), "");
}

#[test]
fn a_point_between_gaps_is_a_dot() {
    let dots = |shape, values: &[Option<f64>]| path::dot_path(shape, values, 10.0);
    let values = [Some(0.0), Some(0.0), None, Some(10.0), None, Some(5.0)];
    assert_eq!(dots(ChartShape::Line, &values), "M251.5 8h0M365.5 66h0");
    assert_eq!(dots(ChartShape::Steps, &values), "M251.5 8h0M365.5 66h0");
    assert_eq!(dots(ChartShape::Bars, &values), "");
    let chart = Chart::new("Rates", ChartUnit::Count, ChartShape::Line)
        .with_series("all", vec![None, Some(1.0), None]);
    let html = chart.render(&window()).into_string();
    assert!(
        html.contains(r#"<path class="dot-1" d="M223 8h0">"#),
        "{html}"
    );
    assert!(!html.contains("line-1"), "{html}");
}

#[test]
fn steps_keep_their_height_over_the_whole_point() {
    let steps = [Some(0.0), Some(0.0), Some(10.0), None, Some(5.0), Some(0.0)];
    assert_eq!(
        drawn(ChartShape::Steps, &steps),
        "M52 124H166V8H223M280 66H337V124H394"
    );
}

#[test]
fn bars_stand_on_the_ground_and_nothing_has_none() {
    assert_eq!(
        drawn(ChartShape::Bars, &[Some(0.0), Some(10.0), None]),
        "M166 124V8h91.2V124z"
    );
}

#[test]
fn a_chart_says_in_words_what_it_shows() {
    let some = vec![Some(3.0), Some(0.0), Some(1.25), None];
    let none = vec![None; 4];
    let chart = Chart::new("Rates", ChartUnit::PerSecond, ChartShape::Line)
        .with_series("out", some)
        .with_series("lost", none);
    let html = chart.render(&window()).into_string();
    let words =
        "Rates, the last hour. out: last 1.25/s, least 0/s, most 3/s; lost: nothing is known.";
    assert!(
        html.contains(&format!("role=\"img\" aria-label=\"{words}\"")),
        "{html}"
    );
    assert!(
        html.contains(r#"Rates <span class="key-1">out</span> <span class="key-2">lost</span>"#),
        "{html}"
    );
    assert!(
        html.contains(r#"viewBox="0 0 400 150""#) && !html.contains("style"),
        "{html}"
    );
    // The axes: the greatest value, and the times.
    assert!(html.contains(">4/s<"), "{html}");
    let time = "data-time=\"2023-11-14T22:13:40.000Z\">22:13<title>2023-11-14 22:13 UTC</title>";
    assert!(
        html.contains(time) && html.contains("Times in <span data-zone>UTC</span>"),
        "{html}"
    );
}

#[test]
fn a_threshold_is_drawn_where_values_come_near_it() {
    let chart = |value| {
        let marks = [
            ChartMark {
                name: "medium",
                value: 40.0,
            },
            ChartMark {
                name: "high",
                value: 4000.0,
            },
        ];
        let chart = Chart::new("Queue", ChartUnit::Count, ChartShape::Line)
            .with_series("reading", vec![Some(value)]);
        chart.with_marks(marks).render(&window()).into_string()
    };
    assert!(!chart(3.0).contains("class=\"mark\""));
    let near = chart(39.0);
    assert!(
        near.contains("medium 40") && !near.contains("high"),
        "{near}"
    );
}

#[test]
fn a_chart_of_the_most_points_takes_a_few_kilobytes() {
    let values: Vec<_> = (0..180)
        .map(|n| Some(f64::from(n * 7919 % 1000) + 0.5))
        .collect();
    let chart = Chart::new("Noise", ChartUnit::Count, ChartShape::Line)
        .with_series("a", values.clone())
        .with_series("b", values);
    let bytes = chart.render(&window()).into_string().len();
    assert!(bytes < 8_000, "{bytes}");
}
