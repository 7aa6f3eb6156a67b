-- The newest result of each device and configuration for one metric, newest first.
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
    AND runs.workload = $workload
    AND metrics.name = $name
    AND (coalesce(metrics.timed_region, runs.timed_region) IS NULL
        OR list_contains($timed_regions, coalesce(metrics.timed_region, runs.timed_region)))
QUALIFY row_number() OVER (
    PARTITION BY runs.device_name, runs.conditions_hash
    ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC, metrics.position
) = 1
ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC
LIMIT $limit
