//! The nearest right name to a wrong one.

/// The candidate that differs least from `word`, where the difference is small enough to be a slip.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are no names of ours, and the comparison takes the product of the lengths.
    if word.len() > 80 {
        return None;
    }
    let word = word.to_lowercase();
    let slips = word.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= slips && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The nearest of `paths` (`idle.after`, …) to `word`: the path or one of its tables as a whole, else
/// a path that ends in this very word.
pub(crate) fn nearest_key(word: &str, paths: &[String]) -> Option<String> {
    let mut candidates: Vec<&str> = Vec::new();
    for path in paths {
        candidates.extend(path.split('.').next());
        candidates.push(path);
    }
    let exact = || paths.iter().find(|path| path.rsplit('.').next() == Some(word)).map(String::as_str);
    nearest(word, candidates).or_else(exact).map(str::to_owned)
}
