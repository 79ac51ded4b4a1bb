//! A cost by a dimension, and the power law that fits it.

/// The largest exponent: a cost that grows in proportion, with room for noise.
pub(crate) const EXPONENT_MAX: f64 = 1.05;

/// The least cost that counts, as a share of what an idle server costs: below it, noise of that one
/// decides.
const CLEAR_SHARE: f64 = 0.5;

/// The least points for a fit.
const POINTS_MIN: usize = 3;

/// A cost at one value of a dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) at: usize,
    pub(crate) total: f64,
    /// The part of it that an idle server costs too.
    pub(crate) idle: f64,
}

/// A cost over a dimension.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) cost: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) dimension: &'static str,
    pub(crate) points: Vec<Point>,
}

/// A power law: `factor * at ^ exponent`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fit {
    pub(crate) exponent: f64,
    factor: f64,
}

impl Point {
    pub(crate) fn cost(&self) -> f64 {
        self.total - self.idle
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.cost() > 0.0 && self.cost() >= self.idle * CLEAR_SHARE
    }

    fn logarithms(&self) -> (f64, f64) {
        ((self.at as f64).ln(), self.cost().ln())
    }
}

impl Series {
    /// The points whose cost is well above that of an idle server.
    pub(crate) fn clear(&self) -> Vec<Point> {
        self.points
            .iter()
            .copied()
            .filter(Point::is_clear)
            .collect()
    }

    /// The power law of least squares on logarithms. `None` if too few points are clear.
    pub(crate) fn fit(&self) -> Option<Fit> {
        let logarithms: Vec<_> = self.clear().iter().map(Point::logarithms).collect();
        if logarithms.len() < POINTS_MIN {
            return None;
        }
        let count = logarithms.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
        let x = mean(|it| it.0);
        let y = mean(|it| it.1);
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            logarithms
                .iter()
                .map(|it| of(it.0 - x, it.1 - y))
                .sum::<f64>()
        };
        let exponent = sum(&|x, y| x * y) / sum(&|x, _| x * x);
        Some(Fit {
            exponent,
            factor: (y - exponent * x).exp(),
        })
    }

    /// The exponent between the last two points.
    pub(crate) fn last_doubling(&self) -> Option<f64> {
        let [.., before, last] = self.clear()[..] else {
            return None;
        };
        let (x, y) = before.logarithms();
        let (last_x, last_y) = last.logarithms();
        Some((last_y - y) / (last_x - x))
    }
}

impl Fit {
    /// The cost by the power law.
    pub(crate) fn at(&self, value: f64) -> f64 {
        self.factor * value.powf(self.exponent)
    }
}
