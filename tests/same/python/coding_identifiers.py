naïve = "ﬁ"
ﬁne = 1
print(naïve, fine, "naïve" in globals())
