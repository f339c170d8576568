import os
open("ěš🐈.txt", "w").close()
open(b"raw\xff", "w").close()
print(sorted(os.listdir(".")) , sorted(os.listdir(b".")))
