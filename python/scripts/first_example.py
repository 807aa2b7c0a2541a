"""Prints the first Python example of a page: the first fenced block marked `python`, prompts removed."""

import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    found = re.search(r"^```python\n(.*?)^```", page.read(), re.MULTILINE | re.DOTALL)
if found:
    lines = found.group(1).splitlines()
    if any(line.startswith(">>> ") for line in lines):
        lines = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    print("\n".join(lines))
