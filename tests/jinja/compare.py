"""Renders templates over all conversations with the program in MLA_RENDER and with Python's
jinja2, and says where the bytes differ: compare.py FILE.jinja..."""
import json
import os
import subprocess
import sys

import conversations
import environment


def main():
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            template = file.read()
        jobs = [{"template": template, "own": conversations.OWN, "fields": fields}
                for fields in conversations.all_fields()]
        lines = "".join(json.dumps(job) + "\n" for job in jobs).encode()
        done = subprocess.run([os.environ["MLA_RENDER"]], input=lines, capture_output=True, check=True)
        texts = refusals = 0
        for job, line in zip(jobs, done.stdout.splitlines()):
            answer = json.loads(line)
            try:
                wanted = environment.render(template, job["own"], job["fields"])
            except Exception as error:
                wanted = None
                if "error" not in answer:
                    print(f"{path}: jinja2 says {error}, we print {answer['text']!r}")
            if wanted is not None and answer.get("text") != wanted:
                print(f"{path}: {job['fields']['messages']!r}\n  ours   {answer!r}\n  theirs {wanted!r}")
            same = answer.get("text") == wanted
            texts += same and wanted is not None
            refusals += same and wanted is None
            bad += not same
        print(f"{path}: {texts} texts equal, {refusals} refused by both, {len(jobs) - texts - refusals} differ")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
