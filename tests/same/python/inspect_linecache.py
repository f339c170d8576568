import linecache
print(repr(linecache.getline(__file__, 1)), linecache.cache.keys() == {__file__})
