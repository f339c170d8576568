# -*- coding: utf-8-sig -*-
print("with a cookie é")
