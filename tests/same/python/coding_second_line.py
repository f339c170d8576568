#!/usr/bin/env python3
# vim: set fileencoding=ascii :
print("ascii only")
