"""validate.py SCHEMA RESULT [complete|incomplete] [rows=N] [samples=N]: exit 1 if RESULT is not what it should be."""
import json
import sys

import jsonschema


def main(schema_path, result_path, *expectations):
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    with open(result_path, encoding="utf-8") as file:
        result = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(result)
    rows = result["results"]
    assert rows, "no rows"
    for expectation in expectations:
        word, _, number = expectation.partition("=")
        if word in ("complete", "incomplete"):
            assert result["complete"] == (word == "complete"), f"complete is {result['complete']}"
        elif word == "rows":
            assert len(rows) == int(number), f"{len(rows)} rows"
        elif word == "samples":
            assert all(len(row["samples_us"]) == int(number) for row in rows), "number of samples"
        else:
            raise ValueError(expectation)
    for row in rows:
        assert row["time_us_min"] <= row["time_us_p50"] <= row["time_us_max"], row
        assert abs(row["algbw_GBps"] * row["time_us_p50"] * 1e3 / row["bytes"] - 1) < 1e-6, row


if __name__ == "__main__":
    main(*sys.argv[1:])
