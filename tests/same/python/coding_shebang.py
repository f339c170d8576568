#!/usr/bin/python3 -O
print(__debug__)
