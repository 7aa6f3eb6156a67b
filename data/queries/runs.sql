-- Runs, newest first, with their headline metric. An empty list or text filters nothing.
SELECT
    runs.* EXCLUDE (spec, environment, details, search_text),
    metrics.name AS metric,
    metrics.value AS value,
    metrics.unit AS unit,
    metrics.interval_low,
    metrics.interval_high,
    metrics.n
FROM runs
LEFT JOIN metrics ON metrics.run_id = runs.run_id AND metrics.position = 0
WHERE (len($workloads) = 0 OR list_contains($workloads, runs.workload))
    AND (len($statuses) = 0 OR list_contains($statuses, runs.status))
    AND (len($devices) = 0 OR list_contains($devices, runs.device_name))
    AND (len($models) = 0 OR list_contains($models, runs.model))
    AND (len($precisions) = 0 OR list_contains($precisions, runs.precision))
    AND (len($batch_sizes) = 0 OR list_contains($batch_sizes, runs.batch_size_per_device))
    AND (len($origins) = 0 OR list_contains($origins, runs.origin))
    AND (len($run_ids) = 0 OR list_contains($run_ids, runs.run_id))
    AND ($text = '' OR contains(runs.search_text, lower($text)))
    AND ($include_deleted OR NOT runs.deleted)
ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC
LIMIT $limit
