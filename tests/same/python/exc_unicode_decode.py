b"\xff\xfe".decode()
