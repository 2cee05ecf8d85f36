//! How much a measurement tells, before it is made: bits about which side of the step a place lies
//! on.

/// Intervals of the integral: few, as it is computed for each place and number of runs, and enough
/// for a thousandth of a bit.
const STEPS: usize = 48;
/// Deviations on each side of the means that count.
const TAIL: f64 = 5.0;
/// Beyond this distance the sides cannot be confused.
const FAR: f64 = 12.0;

/// Returns the entropy of a chance, in bits.
pub(crate) fn entropy(chance: f64) -> f64 {
    surprise(chance) + surprise(1.0 - chance)
}

/// Returns what one outcome adds to an entropy.
fn surprise(p: f64) -> f64 {
    // The limit at 0: the logarithm alone would be infinite, and the product no number.
    if p > 0.0 { -p * p.log2() } else { 0.0 }
}

/// Returns the density of a normal value, without its constant factor.
fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

/// Returns the bits that one value tells, which is normal with deviation 1 around 0 or, with a
/// chance, around `distance`.
pub(crate) fn information(chance: f64, distance: f64) -> f64 {
    // NaN included: there is no information.
    if !(chance > 0.0 && chance < 1.0 && distance > 0.0) {
        return 0.0;
    }
    if distance >= FAR {
        return entropy(chance);
    }
    let width = (distance + 2.0 * TAIL) / STEPS as f64;
    let sum: f64 = (0..=STEPS)
        .map(|step| {
            let x = -TAIL + width * step as f64;
            let low = (1.0 - chance) * density(x);
            let high = chance * density(x - distance);
            // What is not known after this value.
            let all = low + high;
            if all > 0.0 {
                all * entropy(high / all)
            } else {
                0.0
            }
        })
        .sum();
    let root_of_two_pi = (2.0 * std::f64::consts::PI).sqrt();
    (entropy(chance) - sum * width / root_of_two_pi).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::{entropy, information};

    #[test]
    fn it_is_what_the_channel_carries() {
        // The capacity of a channel with two inputs and normal noise, by the distance of the
        // inputs.
        for (distance, bits) in [(0.5, 0.044), (1.0, 0.161), (2.0, 0.486), (4.0, 0.913)] {
            assert!(
                (information(0.5, distance) - bits).abs() < 0.001,
                "{distance} {}",
                information(0.5, distance)
            );
        }
        assert!((information(0.3, 100.0) - entropy(0.3)).abs() < 1e-12);
    }

    #[test]
    fn finished_search_asks_for_nothing() {
        for (chance, distance) in [
            (0.0, 3.0),
            (1.0, 3.0),
            (0.5, 0.0),
            (f64::NAN, 1.0),
            (0.5, f64::NAN),
        ] {
            assert!(
                information(chance, distance).abs() < 1e-12,
                "{chance} {distance}"
            );
        }
    }
}
