# args: ["--help"]
import argparse
p = argparse.ArgumentParser(description="Adds.")
p.add_argument("n", type=int)
p.parse_args()
