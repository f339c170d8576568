import locale, sys
print(locale.getpreferredencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors(), sys.getdefaultencoding(), sys.flags.utf8_mode)
