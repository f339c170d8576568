import site, sys
print(site.ENABLE_USER_SITE, "site" in sys.modules)
print(exit, quit)
print(type(exit).__module__)
