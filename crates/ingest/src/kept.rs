//! The form in which profiles are kept: text, a line for each region and each function, fields apart by tabs.

use std::fmt::Write as _;

use model::{Profile, ProfileLine, Region, Share};

const HEAD: &str = "marvin-profile 1";

/// Returns a profile as text.
#[must_use]
pub fn profile_to_text(profile: &Profile) -> String {
    let mut text = format!("{HEAD}\noperations\t{}\n", profile.operations);
    let mut line = |words: std::fmt::Arguments<'_>| text.write_fmt(words).unwrap_or_default();
    for Region { user, kernel, interrupt, other } in &profile.regions {
        line(format_args!("region\t{user}\t{kernel}\t{interrupt}\t{other}\n"));
    }
    for ProfileLine { share, symbol, instructions, repeated, calls } in &profile.lines {
        line(format_args!("{}\t{instructions}\t{repeated}\t{calls}\t{symbol}\n", share.word()));
    }
    text
}

/// Reads that text; nothing when it is something else.
#[must_use]
pub fn profile_from_text(text: &str) -> Option<Profile> {
    let mut lines = text.lines();
    (lines.next()? == HEAD).then_some(())?;
    let mut profile = Profile::default();
    for line in lines {
        let (word, rest) = line.split_once('\t')?;
        let mut fields = rest.splitn(4, '\t');
        let mut number = || fields.next()?.parse::<u64>().ok();
        match word {
            "operations" => profile.operations = number()?,
            "region" => profile.regions.push(Region {
                user: number()?,
                kernel: number()?,
                interrupt: number()?,
                other: number()?,
            }),
            word => {
                let share = Share::ALL.into_iter().find(|share| share.word() == word)?;
                let (instructions, repeated, calls) = (number()?, number()?, number()?);
                let symbol = fields.next()?.to_owned();
                profile.lines.push(ProfileLine { share, symbol, instructions, repeated, calls });
            }
        }
    }
    Some(profile)
}

#[cfg(test)]
mod tests {
    use super::{profile_from_text, profile_to_text};
    use model::{Profile, ProfileLine, Region, Share};

    #[test]
    fn a_profile_comes_back_from_its_text() {
        let line = |share, symbol: &str| ProfileLine {
            share,
            symbol: symbol.to_owned(),
            instructions: 10,
            repeated: 512,
            calls: 1,
        };
        let profile = Profile {
            operations: 8,
            regions: vec![Region { user: 522, kernel: 522, interrupt: 0, other: 0 }],
            lines: vec![line(Share::User, "[user]"), line(Share::Kernel, "crypt some_module")],
        };
        assert_eq!(profile_from_text(&profile_to_text(&profile)), Some(profile));
        assert_eq!(profile_from_text("something else"), None);
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(text: String) {
            let _profile = profile_from_text(&format!("marvin-profile 1\n{text}"));
        }
    }
}
