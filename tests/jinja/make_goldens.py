"""Writes tests/data/templates/goldens.json: what Python's jinja2 prints for each template there
over all conversations, null where it refuses. Run by hand after a change of either."""
import glob
import json
import os

import conversations
import environment

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "templates")


def rendered(template, fields):
    try:
        return environment.render(template, conversations.OWN, fields)
    except Exception:
        return None


def main():
    fields = list(conversations.all_fields())
    texts = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.jinja"))):
        with open(path, encoding="utf-8") as file:
            template = file.read()
        texts[os.path.basename(path)] = [rendered(template, one) for one in fields]
    with open(os.path.join(FOLDER, "goldens.json"), "w", encoding="utf-8") as file:
        json.dump({"own": conversations.OWN, "fields": fields, "texts": texts}, file, ensure_ascii=False, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
