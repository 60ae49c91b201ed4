"""What holds for every test: nothing comes from disk, so that compiles can be counted, and nothing stays there.

Processes that tests start inherit it; tests of the disk cache name a folder of their own.
"""

import os

os.environ["JITCORE_CACHE_DIR"] = ""
