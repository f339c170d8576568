import locale
print(locale.setlocale(locale.LC_ALL), locale.setlocale(locale.LC_ALL, ""), locale.getlocale(), locale.localeconv()["decimal_point"])
