-- Views for whoever asks in SQL: what is most often wanted, without the joins. Described in view_docs.py; runs that a
-- person deleted are in none of them. Empty (NULL) means "not published", "does not apply" or "not measured".

CREATE VIEW results AS
SELECT
    runs.run_id,
    runs.created_utc,
    runs.origin,
    runs.workload,
    runs.model,
    runs.weights,
    runs.device_kind,
    runs.device_name,
    runs.devices,
    runs.batch_size_per_device,
    runs.precision,
    runs.width_px,
    runs.height_px,
    runs.sequence_length,
    runs.steps,
    runs.software,
    coalesce(metrics.timed_region, runs.timed_region) AS timed_region,
    metrics.name AS metric,
    metrics.value,
    metrics.unit,
    metrics.interval_low,
    metrics.interval_high,
    metrics.n,
    metrics.higher_is_better,
    runs.grade,
    metrics.position = 0 AS is_headline
FROM metrics
JOIN runs ON runs.run_id = metrics.run_id
WHERE NOT runs.deleted AND runs.status = 'ok';

CREATE VIEW samples AS
SELECT
    series.run_id,
    runs.workload,
    runs.device_name,
    series.name AS series,
    series.unit,
    series.phase,
    unnest(range(1, len(series.samples) + 1)) AS sample,
    unnest(series.samples) AS value
FROM series
JOIN runs ON runs.run_id = series.run_id
WHERE NOT runs.deleted;

CREATE VIEW losses AS
SELECT
    loss.run_id,
    runs.workload,
    runs.model,
    runs.device_name,
    unnest(coalesce(at_step.samples, CAST(range(1, len(loss.samples) + 1) AS DOUBLE[]))) AS step,
    unnest(loss.samples) AS loss
FROM series AS loss
JOIN runs ON runs.run_id = loss.run_id
LEFT JOIN series AS at_step
    ON at_step.run_id = loss.run_id AND at_step.name = 'loss_at_step' AND at_step.phase = loss.phase
WHERE NOT runs.deleted AND loss.name = 'loss' AND loss.phase = 'measured';

CREATE VIEW stage_times AS
SELECT series.run_id, runs.workload, runs.model, runs.device_name, series.name AS stage, series.median AS median_s, series.n
FROM series
JOIN runs ON runs.run_id = series.run_id
WHERE NOT runs.deleted AND series.name IN ('text_encoder_s', 'denoising_s', 'vae_s');

CREATE VIEW failures AS
SELECT run_id, created_utc, workload, model, device_name, status, error_type, error_message
FROM runs
WHERE NOT deleted AND status <> 'ok';

CREATE VIEW packages AS
SELECT
    runs.run_id,
    runs.created_utc,
    runs.device_name,
    entry.key AS package,
    json_extract_string(entry.value, '$') AS version
FROM runs, json_each(runs.environment, '$.packages') AS entry
WHERE NOT runs.deleted AND json_type(runs.environment, '$.packages') = 'OBJECT';
