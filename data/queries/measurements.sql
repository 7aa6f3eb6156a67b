-- Metrics with their run's conditions: what a comparison needs, without reading a file.
SELECT
    runs.* EXCLUDE (spec, environment, details, search_text),
    metrics.name AS metric_name,
    metrics.value AS metric_value,
    metrics.unit AS metric_unit,
    metrics.interval_low,
    metrics.interval_high,
    metrics.n AS metric_n,
    metrics.higher_is_better,
    metrics.timed_region AS metric_timed_region
FROM metrics
JOIN runs ON runs.run_id = metrics.run_id
WHERE NOT runs.deleted
    AND runs.status = 'ok'
    AND (len($workloads) = 0 OR list_contains($workloads, runs.workload))
    AND (len($names) = 0 OR list_contains($names, metrics.name))
ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC, metrics.position
