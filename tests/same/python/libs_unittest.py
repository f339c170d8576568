import unittest
class T(unittest.TestCase):
    def test_bad(self): self.assertEqual(1, 2)
r = unittest.main(exit=False, argv=["x"], testRunner=unittest.TextTestRunner(stream=open("/dev/null", "w"))).result
print(len(r.failures), r.failures[0][1])
