# The program's own frame is the outermost.
import traceback, sys
def f():
    return traceback.format_stack()
print("".join(f()))
frame = sys._getframe()
print(frame.f_back, frame.f_code.co_name, frame.f_code.co_filename)
