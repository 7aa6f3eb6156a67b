-- The samples of one run, in the order of its record.
SELECT name, unit, phase, n, minimum, median, maximum, samples
FROM series
WHERE run_id = $run_id
ORDER BY position
