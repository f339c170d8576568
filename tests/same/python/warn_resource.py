open("/dev/null")
print("no ResourceWarning by default")
