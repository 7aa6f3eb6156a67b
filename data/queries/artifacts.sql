-- Files that runs made, newest run first, deleted runs left out. Empty lists filter nothing.
SELECT artifacts.run_id, artifacts.path, artifacts.kind, artifacts.sha256
FROM artifacts
JOIN runs ON runs.run_id = artifacts.run_id
WHERE NOT runs.deleted
    AND (len($run_ids) = 0 OR list_contains($run_ids, artifacts.run_id))
    AND (len($kinds) = 0 OR list_contains($kinds, artifacts.kind))
ORDER BY artifacts.run_id DESC, artifacts.position
