-- The values that filters can offer, over the runs that are not deleted.
SELECT
    list_sort(list(DISTINCT workload)) AS workloads,
    list_sort(list(DISTINCT status)) AS statuses,
    list_sort(list(DISTINCT device_name)) AS devices,
    list_sort(list(DISTINCT model) FILTER (model IS NOT NULL)) AS models,
    list_sort(list(DISTINCT precision) FILTER (precision IS NOT NULL)) AS precisions,
    list_sort(list(DISTINCT batch_size_per_device) FILTER (batch_size_per_device IS NOT NULL)) AS batch_sizes,
    list_sort(list(DISTINCT origin)) AS origins
FROM runs
WHERE NOT deleted
