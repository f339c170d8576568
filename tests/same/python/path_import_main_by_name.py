# The program's file imported a second time is a second module.
import sys
print(__name__)
if __name__ == "__main__":
    import main
    print(main is sys.modules["__main__"], main.__file__)
