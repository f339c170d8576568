//! What is different between two texts, line by line and short. Both are a program's: bounded in time and in length.

/// Lines of a diff, at most, and characters of a line.
const MOST_LINES: usize = 20;
const LONGEST_LINE: usize = 160;
/// Pairs of lines that are compared. Above that all of the lines between the equal ends are different.
const MOST_PAIRS: usize = 250_000;

/// A line of the first text, of the second, or of both, by its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Removed(usize),
    Added(usize),
    Same(usize, usize),
}

/// The lines that are different, each group below a line that says where it is.
pub fn line_diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let steps = steps(&old, &new);
    let mut lines = Vec::new();
    let mut is_apart = true;
    for (at, step) in steps.iter().enumerate() {
        let near = &steps[at.saturating_sub(1)..steps.len().min(at + 2)];
        let is_near = near.iter().any(|it| !matches!(it, Step::Same(..)));
        if !is_near {
            is_apart = true;
            continue;
        }
        if std::mem::take(&mut is_apart) {
            let (from, to) = steps[..at]
                .iter()
                .fold((1, 1), |(old, new), step| match step {
                    Step::Removed(_) => (old + 1, new),
                    Step::Added(_) => (old, new + 1),
                    Step::Same(..) => (old + 1, new + 1),
                });
            lines.push(format!("@@ -{from} +{to} @@"));
        }
        let (sign, line) = match *step {
            Step::Removed(at) => ('-', old[at]),
            Step::Added(at) => ('+', new[at]),
            Step::Same(at, _) => (' ', old[at]),
        };
        let cut: String = line.chars().take(LONGEST_LINE).collect();
        lines.push(format!("{sign}{cut}"));
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("... {more} more lines"));
    }
    lines.join("\n")
}

/// From the first text to the second.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let equal = |(a, b): &(&&str, &&str)| a == b;
    let start = old.iter().zip(new).take_while(equal).count();
    let rest = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = rest.take_while(equal).count();
    let (a, b) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut steps: Vec<Step> = (0..start).map(|at| Step::Same(at, at)).collect();
    match a.len().saturating_mul(b.len()) <= MOST_PAIRS {
        true => steps.extend(between(a, b, start)),
        false => {
            steps.extend((0..a.len()).map(|at| Step::Removed(start + at)));
            steps.extend((0..b.len()).map(|at| Step::Added(start + at)));
        }
    }
    steps.extend(
        (0..end)
            .rev()
            .map(|at| Step::Same(old.len() - 1 - at, new.len() - 1 - at)),
    );
    steps
}

/// The same by the longest common subsequence.
fn between(a: &[&str], b: &[&str], start: usize) -> Vec<Step> {
    // How many lines are common from here on.
    let mut common = vec![vec![0u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = match a[i] == b[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            steps.push(Step::Same(start + i, start + j));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || i < a.len() && common[i + 1][j] >= common[i][j + 1] {
            steps.push(Step::Removed(start + i));
            i += 1;
        } else {
            steps.push(Step::Added(start + j));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_different_is_shown_with_a_line_around_it() {
        assert_eq!(
            line_diff("a\nb\nc\nd\n", "a\nb\nx\nd\n"),
            "@@ -2 +2 @@\n b\n-c\n+x\n d"
        );
        assert_eq!(line_diff("1", "12"), "@@ -1 +1 @@\n-1\n+12");
        assert_eq!(line_diff("", "a\nb"), "@@ -1 +1 @@\n+a\n+b");
        let (old, new) = ("a\n1\n2\n3\n4\nb\n", "A\n1\n2\n3\n4\nB\n");
        let expected = "@@ -1 +1 @@\n-a\n+A\n 1\n@@ -5 +5 @@\n 4\n-b\n+B";
        assert_eq!(line_diff(old, new), expected);
        assert_eq!(line_diff("a\nb\n", "b\na\nb\n"), "@@ -1 +1 @@\n+b\n a");
        assert_eq!(line_diff("a\n", "a"), "");
    }

    #[test]
    fn it_is_short_and_quick_whatever_the_texts_are() {
        let many = |word: &str| {
            (0..30_000)
                .map(|it| format!("{word}{it}\n"))
                .collect::<String>()
        };
        let diff = line_diff(&many("a"), &many("b"));
        assert_eq!(diff.lines().count(), MOST_LINES + 1);
        assert!(diff.ends_with("... 59981 more lines"), "{diff}");
        let long = line_diff("a", &"é".repeat(10_000));
        assert!(long.chars().count() < 200);
    }
}
