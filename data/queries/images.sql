-- Images of runs that are not deleted, newest run first. Every word of the text must be found.
SELECT artifacts.run_id, artifacts.path, runs.favourite
FROM artifacts
JOIN runs ON runs.run_id = artifacts.run_id
WHERE artifacts.kind = 'image'
    AND NOT runs.deleted
    AND (NOT $favourites OR runs.favourite)
    -- Short words are not looked for in the id, where any digits may stand by chance.
    AND len(list_filter($words, lambda word: NOT contains(
        CASE WHEN length(word) < 8 THEN replace(runs.search_text, runs.run_id, '') ELSE runs.search_text END,
        lower(word)
    ))) = 0
ORDER BY runs.created_utc DESC NULLS LAST, artifacts.run_id DESC, artifacts.position
