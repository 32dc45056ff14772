//! How alike two names are.

/// The known name that a misspelled one is most like, if it is like any.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let plain = normal(name);
    let allowed = match plain.len() {
        0..=3 => 0,
        4..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    known
        .filter_map(|candidate| {
            let other = normal(candidate);
            let far = plain.len().abs_diff(other.len()) > allowed;
            (!far).then(|| (distance(&plain, &other), candidate))
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, candidate)| (*distance, candidate.len()))
        .map(|(_, candidate)| candidate)
}

/// Case and separators are what people mistake most.
fn normal(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).take(64).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one to the other.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut left = None;
    for (row, &a) in one.iter().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        let mut above = None;
        for (column, &b) in other.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&last, column) + usize::from(a != b)).min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if column > 0 && left == Some(b) && above == Some(a) {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            above = Some(b);
        }
        left = Some(a);
        before = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let far = |one: &str, other: &str| distance(&normal(one), &normal(other));
        assert_eq!((far("", ""), far("abc", ""), far("", "abc"), far("abc", "abc")), (0, 3, 3, 0));
        assert_eq!((far("group_Name", "groupname"), far("replcias", "replicas"), far("image", "imag")), (0, 1, 1));
        assert_eq!(far("kitten", "sitting"), 3);
    }

    #[test]
    fn the_nearest_name_within_reach() {
        let known = ["groupName", "replicas", "minReplicas", "template", "env", "envFrom"];
        let find = |name| nearest(name, known.into_iter());
        assert_eq!(find("groupname"), Some("groupName"));
        assert_eq!(find("group_name"), Some("groupName"));
        assert_eq!(find("minReplica"), Some("minReplicas"));
        assert_eq!(find("tempalte"), Some("template"));
        assert_eq!(find("envs"), Some("env"));
        assert_eq!(find("en"), None, "short names say too little");
        assert_eq!(find("volumes"), None);
        assert_eq!(find(""), None);
    }
}
