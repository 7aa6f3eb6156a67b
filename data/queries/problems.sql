-- Records that cannot be read, oldest first.
SELECT run_id, path, message_id, params FROM problems ORDER BY run_id
