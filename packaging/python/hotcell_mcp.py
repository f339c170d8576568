"""Starts the program hotcell of this wheel, for `uvx hotcell-mcp` and `python -m hotcell_mcp`."""

import os
import sys
import sysconfig


def _program():
    folders = [os.path.dirname(os.path.abspath(sys.argv[0])), sysconfig.get_path("scripts")]
    user = sysconfig.get_path("scripts", f"{os.name}_user")
    for folder in folders + [user]:
        path = os.path.join(folder, "hotcell")
        if os.access(path, os.X_OK):
            return path
    sys.exit("hotcell: the program is not where this wheel puts it\nhint: Install hotcell-mcp again.")


def main():
    os.execv(_program(), ["hotcell"] + sys.argv[1:])
