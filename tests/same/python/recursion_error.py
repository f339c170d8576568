def f(): f()
f()
