"""counters.py STATUS LAST: the counters of a status, less those of the last call."""

import json
import sys
from pathlib import Path

now = json.loads(Path(sys.argv[1]).read_text())["counters"]
last = Path(sys.argv[2])
before = json.loads(last.read_text()) if last.exists() else {}
last.write_text(json.dumps(now))
print(json.dumps({key: value - before.get(key, 0) for key, value in now.items()}))
