import decimal
print(decimal.getcontext())
