-- Metrics of runs that are not deleted, in the order of the records. Empty lists filter nothing.
SELECT metrics.* EXCLUDE (position), runs.workload, runs.device_name, runs.status
FROM metrics
JOIN runs ON runs.run_id = metrics.run_id
WHERE NOT runs.deleted
    AND (len($run_ids) = 0 OR list_contains($run_ids, metrics.run_id))
    AND (len($names) = 0 OR list_contains($names, metrics.name))
ORDER BY metrics.run_id DESC, metrics.position
