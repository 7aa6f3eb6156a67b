-- The newest value of each device and configuration, so that ten thousand runs cost as little to compare as a dozen.
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
    AND list_contains($names, metrics.name)
QUALIFY
    row_number() OVER (
        PARTITION BY runs.workload, runs.device_name, runs.conditions_hash, metrics.name, metrics.timed_region
        ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC
    ) = 1
    AND row_number() OVER (
        PARTITION BY runs.workload, metrics.name, metrics.timed_region
        ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC
    ) <= $look_at
ORDER BY runs.created_utc DESC NULLS LAST, runs.run_id DESC, metrics.position
