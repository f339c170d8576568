# -*- coding: klingon -*-
print("never")
