-- The index of run folders. Everything here is made from files and can be made again: no number lives only here.
-- Times are UTC without a zone. Empty (NULL) means "not published", "does not apply" or "not measured", never zero.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);

-- What the index knows of each folder's files: a run is read again when one of these four changes.
CREATE TABLE files (
    run_id VARCHAR PRIMARY KEY,
    record_mtime_ns BIGINT NOT NULL,
    record_size_bytes BIGINT NOT NULL,
    annotations_mtime_ns BIGINT,
    annotations_size_bytes BIGINT
);

CREATE TABLE runs (
    run_id VARCHAR PRIMARY KEY,
    group_id VARCHAR,
    repeat BIGINT,
    origin VARCHAR NOT NULL,
    workload VARCHAR NOT NULL,
    preset VARCHAR,
    status VARCHAR NOT NULL,
    created_utc TIMESTAMP,
    started_utc TIMESTAMP,
    finished_utc TIMESTAMP,
    device_kind VARCHAR NOT NULL,
    device_name VARCHAR NOT NULL,
    device_memory_bytes BIGINT,
    device_cores BIGINT,
    -- runners.records.Conditions, field by field
    model VARCHAR,
    weights VARCHAR,
    width_px BIGINT,
    height_px BIGINT,
    sequence_length BIGINT,
    target_length BIGINT,
    steps BIGINT,
    scheduler VARCHAR,
    guidance DOUBLE,
    batch_size_per_device BIGINT,
    devices BIGINT,
    precision VARCHAR,
    tf32 BOOLEAN,
    timed_region VARCHAR,
    warmup_rule VARCHAR,
    gradient_checkpointing BOOLEAN,
    optimizer VARCHAR,
    learning_rate DOUBLE,
    mode VARCHAR,
    software VARCHAR,
    software_year BIGINT,
    epochs DOUBLE,
    conditions_hash VARCHAR NOT NULL,
    prompt VARCHAR,
    error_type VARCHAR,
    error_message_id VARCHAR,
    error_message VARCHAR,
    sync_policy VARCHAR,
    warnings VARCHAR[] NOT NULL,
    grade VARCHAR,
    grade_reasons VARCHAR[] NOT NULL,
    spec JSON NOT NULL,
    environment JSON NOT NULL,
    details JSON NOT NULL,
    -- annotations.json: what people add
    note VARCHAR NOT NULL,
    tags VARCHAR[] NOT NULL,
    favourite BOOLEAN NOT NULL,
    deleted BOOLEAN NOT NULL,
    search_text VARCHAR NOT NULL
);

CREATE TABLE metrics (
    run_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    value DOUBLE,
    unit VARCHAR NOT NULL,
    interval_low DOUBLE,
    interval_high DOUBLE,
    n BIGINT NOT NULL,
    higher_is_better BOOLEAN NOT NULL,
    timed_region VARCHAR
);

-- One row a series, its samples in a list: 5 million samples stay a few ten thousand rows, read a run at a time.
CREATE TABLE series (
    run_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,
    phase VARCHAR NOT NULL,
    n BIGINT NOT NULL,
    minimum DOUBLE,
    median DOUBLE,
    maximum DOUBLE,
    samples DOUBLE[] NOT NULL
);

CREATE TABLE phases (
    run_id VARCHAR NOT NULL, position BIGINT NOT NULL, name VARCHAR NOT NULL, duration_s DOUBLE
);

CREATE TABLE artifacts (
    run_id VARCHAR NOT NULL, position BIGINT NOT NULL, path VARCHAR NOT NULL, kind VARCHAR NOT NULL, sha256 VARCHAR
);

-- Records that cannot be read. Their files are left as they are.
CREATE TABLE problems (
    run_id VARCHAR PRIMARY KEY, path VARCHAR NOT NULL, message_id VARCHAR NOT NULL, params JSON NOT NULL
);
