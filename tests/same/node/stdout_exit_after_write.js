process.stdout.write("x".repeat(20000) + "\n");
process.exit(0);
