# stdin: "Ada\n36\n"
name = input()
age = int(input("age? "))
print(f"{name} is {age}")
