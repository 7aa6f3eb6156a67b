"""The sentences of the catalogue: what is wrong with a row or a file."""

from runners.messages import N_

CATALOGUE_MESSAGES: dict[str, str] = {
    "catalogue-invalid": N_("The reference catalogue has {count} bad rows. First: {first}"),
    "catalogue-row": N_("{file}, line {line}: {reason}."),
    "unknown-measurement": N_("There is no run and no reference with the id “{id}”. Nearest: {nearest}."),
    "no-measurement": N_("The run {id} has no metric that can be compared."),
    # Reasons: the end of "file, line n: …".
    "row-empty": N_("{column} is empty"),
    "row-choice": N_("{column} “{value}” is not one of {known}"),
    "row-pattern": N_("{column} “{value}” is not of the form {pattern}"),
    "row-date": N_("{column} “{value}” is not a date as YYYY, YYYY-MM or YYYY-MM-DD"),
    "row-number": N_("{column} “{value}” is not a number above zero"),
    "row-whole": N_("{column} “{value}” is not a whole number from 1 to {most}"),
    "row-boolean": N_("{column} “{value}” is neither true nor false"),
    "row-unknown": N_("{column} names “{value}”, which is not known"),
    "row-cells": N_("it has {count} cells, the header has {expected}"),
    "row-not-utf8": N_("{column} has bytes that are not UTF-8"),
    "row-id-used": N_("the id “{value}” is already in use"),
    "row-baseline": N_("baseline_id “{value}” is no row of this file"),
    "row-baseline-more": N_("baseline_id “{value}” is no row of this file (named in {count} more rows)"),
    "row-value-status": N_("value must be empty exactly where status is “not available”"),
    "row-canonical-alone": N_("canonical_value and canonical_unit need a canonical_metric"),
    "row-canonical-metric": N_("canonical_metric “{value}” is not known"),
    "row-canonical-unit": N_("canonical_unit of {canonical} must be “{unit}”, not “{value}”"),
    "row-canonical-empty": N_("canonical_value must be empty exactly where value is"),
    "row-canonical-value": N_(
        "canonical_value {value} does not follow from {published} {published_unit}: that is {expected} {unit}"
    ),
    "row-no-conversion": N_(
        "there is no conversion from {published_unit} to {unit}: leave the canonical columns empty"
    ),
    "row-conversion-needs": N_("{published_unit} becomes {unit} only where {needed} are known"),
    "row-assumed-empty": N_("assumed_fields names {value}, which is empty"),
    "row-assumed-source": N_("assumed_fields needs assumed_source_ids: where the values come from"),
    "row-benchmark": N_("a benchmark row needs its model and number of devices"),
    "row-memory-source": N_("memory_gb needs memory_source_id: where it was read"),
    "file-unreadable": N_("it cannot be read on: {reason}"),
    "file-empty": N_("there are no rows below the header"),
    "file-no-header": N_("the header, with the names of the columns, is missing"),
    "file-header-not-utf8": N_("the header has bytes that are not UTF-8"),
    "file-column-twice": N_("there are two columns “{value}”"),
    "file-no-column": N_("there is no column {value}"),
}
