process.stdout.write("a", () => process.stdout.write("b\n", () => process.exit(3)));
