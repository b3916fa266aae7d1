"""validate_run.py RUN_DIRECTORY SCHEMA_FOLDER KIND...: exit 1 if a file of the run is not what its schema says, if its log has
other kinds of lines than these between the first and the last, or if a schema lets a file pass that lacks a key or has one
too many."""
import copy
import json
import pathlib
import sys

import jsonschema


def validator(schemas, name):
    schema = json.loads((schemas / f"{name}-1.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def weakened(document):
    """The document without one key, or with one more, for every object in it that is not free in its keys."""
    def objects(node, path):
        if isinstance(node, dict):
            yield path
            for key, value in node.items():
                yield from objects(value, path + [key])
        elif isinstance(node, list) and node:
            yield from objects(node[0], path + [0])

    for path in objects(document, []):
        if {"recipe", "libraries", "variables"} & set(path):
            continue
        for key in [None, *at(document, path)]:
            changed = copy.deepcopy(document)
            if key is None:
                at(changed, path)["no_such_key"] = 1
            else:
                del at(changed, path)[key]
            yield f"{path} {'with one more' if key is None else f'without {key}'}", changed


def at(document, path):
    for key in path:
        document = document[key]
    return document


def check(validate, document):
    validate.validate(document)
    for what, changed in weakened(document):
        assert not validate.is_valid(changed), f"the schema accepts it {what}"


def main(run, schemas, *kinds):
    run, schemas = pathlib.Path(run), pathlib.Path(schemas)
    check(validator(schemas, "train_run"), json.loads((run / "run.json").read_text(encoding="utf-8")))
    check(validator(schemas, "train_status"), json.loads((run / "status.json").read_text(encoding="utf-8")))
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines[0]["kind"] == "start" and lines[-1]["kind"] == "final", lines
    of_checkpoints = {"start", "resume", "save"}  # as often as the run was interrupted, or saved
    assert {line["kind"] for line in lines[1:-1]} - of_checkpoints == set(kinds), lines
    for line in lines:
        check(validator(schemas, "train_log"), line)
    for index in run.glob("checkpoints/*/index.json"):
        check(validator(schemas, "checkpoint"), json.loads(index.read_text(encoding="utf-8")))
    short = dict(lines[-1], steady=None, evaluation=None, data=None)
    validator(schemas, "train_log").validate(short)


if __name__ == "__main__":
    main(*sys.argv[1:])
